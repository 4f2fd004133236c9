//! `fork`
