//! The steps of operations, counted in tests only.

#[derive(Default)]
pub(super) struct StepCount {
    #[cfg(test)]
    count: u64,
}

impl StepCount {
    #[inline]
    pub(super) fn take(&mut self) {
        #[cfg(test)]
        {
            self.count += 1;
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
