//! Sets of flags in one byte.

/// Declares a set of flags.
macro_rules! flags {
    ($(#[$doc:meta])* $name:ident { $($(#[$flag_doc:meta])* $flag:ident = $bit:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name(u8);

        impl $name {
            $($(#[$flag_doc])* pub(crate) const $flag: $name = $name(1 << $bit);)+

            /// Whether any of `flags` is set.
            #[inline]
            pub(crate) const fn any(self, flags: $name) -> bool {
                self.0 & flags.0 != 0
            }

            /// These flags and `flags`.
            #[inline]
            #[must_use]
            pub(crate) const fn with(self, flags: $name) -> $name {
                $name(self.0 | flags.0)
            }

            /// These flags but for `flags`.
            #[allow(dead_code, reason = "some sets only grow")]
            #[inline]
            #[must_use]
            pub(crate) const fn without(self, flags: $name) -> $name {
                $name(self.0 & !flags.0)
            }
        }
    };
}

pub(crate) use flags;
