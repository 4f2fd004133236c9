//! The completion driver.
