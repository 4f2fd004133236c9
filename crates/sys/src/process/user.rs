//! Users, and irrevocably dropping privileges.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;

use rustix::process::{geteuid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};

/// A user in the databases of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemUser {
    /// The name.
    pub name: String,
    /// The number.
    pub id: u32,
    /// The number of the primary group.
    pub group: u32,
    /// All groups, the primary one included.
    pub groups: Vec<u32>,
}

/// Limits for a user's strings and number of groups.
const MOST_BYTES: usize = 64 * 1024;
const MOST_GROUPS: usize = 1024;

impl SystemUser {
    /// Looks up a user by name (`man 3 getpwnam_r`, `man 3 getgrouplist`). `None` if there is none.
    pub fn find(name: &str) -> io::Result<Option<SystemUser>> {
        let name = CString::new(name)?;
        look_up(|entry, strings, length, found| {
            // SAFETY: the name ends with NUL; `look_up` guarantees the other pointers.
            unsafe { libc::getpwnam_r(name.as_ptr(), entry, strings, length, found) }
        })
    }

    /// Looks up a user by number (`man 3 getpwuid_r`). `None` if there is none.
    pub fn with_id(id: u32) -> io::Result<Option<SystemUser>> {
        look_up(|entry, strings, length, found| {
            // SAFETY: `look_up` guarantees the pointers.
            unsafe { libc::getpwuid_r(id, entry, strings, length, found) }
        })
    }

    /// Changes irrevocably to this user and its groups. The process must have one thread.
    ///
    /// # Errors
    /// The error of `setgroups(2)`, `setresgid(2)` or `setresuid(2)`; the process must then end.
    pub fn switch_to(&self) -> io::Result<()> {
        // SAFETY: the pointer and the length are those of a live slice.
        check(unsafe { libc::setgroups(self.groups.len(), self.groups.as_ptr()) })?;
        // SAFETY: plain numbers.
        check(unsafe { libc::setresgid(self.group, self.group, self.group) })?;
        // SAFETY: plain numbers.
        check(unsafe { libc::setresuid(self.id, self.id, self.id) })?;
        // SAFETY: plain numbers.
        if self.id != 0 && unsafe { libc::setuid(0) } == 0 {
            return Err(io::Error::other("the change of user can be undone"));
        }
        Ok(())
    }
}

/// Looks up a user by one of the calls of `man 3 getpwnam_r`. The call receives an entry, a buffer with its length, and
/// a pointer for the result.
fn look_up(
    call: impl FnOnce(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> libc::c_int,
) -> io::Result<Option<SystemUser>> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut strings = vec![0u8; MOST_BYTES];
    let mut found = std::ptr::null_mut();
    let error = call(entry.as_mut_ptr(), strings.as_mut_ptr().cast(), strings.len(), &raw mut found);
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    if found.is_null() {
        return Ok(None);
    }
    // SAFETY: the call succeeded and found something, so it filled the entry.
    let entry = unsafe { entry.assume_init() };
    // SAFETY: the entry's name ends with NUL and lies in `strings`, which is still live.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    let groups = groups(name, entry.pw_gid)?;
    Ok(Some(SystemUser {
        name: name.to_string_lossy().into_owned(),
        id: entry.pw_uid,
        group: entry.pw_gid,
        groups,
    }))
}

fn groups(name: &CStr, primary: libc::gid_t) -> io::Result<Vec<u32>> {
    let mut groups = vec![0; MOST_GROUPS];
    let mut count = MOST_GROUPS as libc::c_int;
    // SAFETY: the name ends with NUL; the buffer has as many places as the count says.
    let result = unsafe { libc::getgrouplist(name.as_ptr(), primary, groups.as_mut_ptr(), &raw mut count) };
    if result < 0 {
        return Err(io::Error::other(format!("the user has more than {MOST_GROUPS} groups")));
    }
    groups.truncate(usize::try_from(count).unwrap_or(0));
    Ok(groups)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether this process acts as root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// The number of the user that this process started as.
pub fn own() -> u32 {
    getuid().as_raw()
}

/// Drops every capability, and prevents regaining one by running a program (`man 7 capabilities`,
/// `PR_SET_NO_NEW_PRIVS`). The process must have one thread.
pub fn drop_capabilities() -> io::Result<()> {
    set_no_new_privs(true)?;
    // Kernels before 4.3 have no ambient set to clear.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_and_its_first_group_is_among_its_groups() {
        let root = SystemUser::find("root").expect("the database can be read").expect("there is root");
        assert_eq!((root.id, root.group), (0, 0));
        assert!(root.groups.contains(&0));
        assert_eq!(SystemUser::with_id(0).expect("the database can be read"), Some(root));
    }

    #[test]
    fn a_user_that_is_not_there_is_not_an_error() {
        assert_eq!(SystemUser::find("no-such-user-here").expect("the database can be read"), None);
        assert_eq!(SystemUser::with_id(4_000_000_000).expect("the database can be read"), None);
    }
}
