//! The lifetimes of sessions.

use std::sync::Mutex;
use std::time::Duration;

use crate::store::{Member, MemberStore, StoreError, StoredSession};

/// The lifetimes of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The idle timeout.
    pub idle: Duration,
    /// The greatest age.
    pub absolute: Duration,
}

/// The interval between cleanups of the table.
const CLEANED_EVERY: i64 = 600;
/// The most live sessions of a member; another login ends the oldest.
pub(crate) const MOST: usize = 32;
/// The longest `grain` in seconds.
const LONGEST_GRAIN: i64 = 60;

#[derive(Debug)]
pub(crate) struct Sessions {
    idle: i64,
    absolute: i64,
    /// After a written use, further uses are not written for this many seconds.
    grain: i64,
    /// The time of the last cleanup.
    cleaned: Mutex<i64>,
}

impl Sessions {
    pub(crate) fn new(lifetime: Lifetime) -> Sessions {
        let seconds = |length: Duration| i64::try_from(length.as_secs()).unwrap_or(i64::MAX / 4).max(1);
        let (idle, absolute) = (seconds(lifetime.idle), seconds(lifetime.absolute));
        let grain = (idle / 8).clamp(1, LONGEST_GRAIN);
        Sessions { idle, absolute, grain, cleaned: Mutex::new(0) }
    }

    /// The oldest creation time and the oldest last use that a live session can have.
    ///
    /// Times are whole seconds, and the real last use may be up to `grain` later than the written one. Both favour the
    /// member: a session outlives `idle` by at most `grain`, and `absolute` by at most a second.
    fn horizon(&self, now: i64) -> (i64, i64) {
        (now - self.absolute, now - self.idle - self.grain + 1)
    }

    fn is_live(&self, session: &StoredSession, now: i64) -> bool {
        let (created, seen) = self.horizon(now);
        session.created >= created && session.seen >= seen
    }

    /// The session with this digest, if it is live.
    pub(crate) fn find(
        &self,
        store: &MemberStore,
        digest: &str,
        now: i64,
    ) -> Result<Option<StoredSession>, StoreError> {
        let Some(session) = store.session(digest)? else { return Ok(None) };
        if !self.is_live(&session, now) {
            store.remove_session(digest)?;
            return Ok(None);
        }
        if now - session.seen >= self.grain {
            store.touch_session(digest, now)?;
        }
        Ok(Some(session))
    }

    /// Begins a session of a member whose password was verified. Returns false if the member was changed, disabled or
    /// removed after `user` was read.
    pub(crate) fn begin(
        &self,
        store: &MemberStore,
        digest: &str,
        user: &Member,
        now: i64,
    ) -> Result<bool, StoreError> {
        let session = StoredSession { user: user.id, created: now, seen: now, epoch: user.epoch };
        self.clean(store, now)?;
        store.add_session(digest, session, |others| self.surplus(others, now))
    }

    /// The sessions of a member that end when another session begins: expired sessions, and the oldest beyond [`MOST`].
    fn surplus(&self, others: Vec<(String, StoredSession)>, now: i64) -> Vec<String> {
        let (mut live, mut over): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, session)| self.is_live(session, now));
        live.sort_by_key(|(_, session)| std::cmp::Reverse((session.created, session.seen)));
        over.extend(live.into_iter().skip(MOST - 1));
        over.into_iter().map(|(digest, _)| digest).collect()
    }

    /// The number of live sessions of a member.
    pub(crate) fn count(&self, store: &MemberStore, user: i64, now: i64) -> Result<u64, StoreError> {
        let (created, seen) = self.horizon(now);
        store.count_sessions(user, created, seen)
    }

    /// Removes expired sessions at intervals.
    fn clean(&self, store: &MemberStore, now: i64) -> Result<(), StoreError> {
        {
            let mut cleaned = self.cleaned.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if now - *cleaned < CLEANED_EVERY {
                return Ok(());
            }
            *cleaned = now;
        }
        let (created, seen) = self.horizon(now);
        store.remove_old_sessions(created, seen).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::url::DatabaseUrl;

    /// Creates sessions of one stored member.
    fn sessions(idle: u64, absolute: u64) -> (MemberStore, Sessions, Member) {
        let url: DatabaseUrl = "sqlite::memory:".parse().expect("a legal URL");
        // One connection, because each has a database of its own.
        let store = MemberStore::open(&url, 1).expect("a database in memory");
        let text = String::from("ann");
        let (name, key, look, password) = (text.clone(), text.clone(), text.clone(), text);
        let user = Member { id: 1, name, key, look, password, created: 0, disabled: false, epoch: 0 };
        store.add_user(&user, None, 0).expect("the table is empty");
        let lifetime = Lifetime { idle: Duration::from_secs(idle), absolute: Duration::from_secs(absolute) };
        (store, Sessions::new(lifetime), user)
    }

    #[test]
    fn a_session_never_ends_before_its_idle_time_has_passed() {
        const YEAR: u64 = 365 * 24 * 60 * 60;
        for idle in [1, 2, 7, 8, 9, 60, 480, 3600, 24 * 3600] {
            // Milliseconds, so that uses fall anywhere within a second.
            for pause in [idle * 250, idle * 999, idle * 1000] {
                let (store, sessions, user) = sessions(idle, YEAR);
                let mut now = 1_000_000_999;
                let seconds = |now: u64| i64::try_from(now / 1000).expect("a moment");
                assert_eq!(sessions.begin(&store, "digest", &user, seconds(now)), Ok(true));
                for _ in 0..20 {
                    now += pause;
                    let found = sessions.find(&store, "digest", seconds(now)).expect("a database");
                    assert!(found.is_some(), "idle {idle} s, used every {pause} ms");
                }
                now += (idle + u64::try_from(sessions.grain).expect("positive")) * 1000;
                let found = sessions.find(&store, "digest", seconds(now)).expect("a database");
                assert_eq!(found, None, "idle {idle} s, not used for longer");
            }
        }
    }

    #[test]
    fn h80_a_session_of_a_former_epoch_does_not_begin() {
        let (store, sessions, former) = sessions(60, 60);
        let begin = |user: &Member| sessions.begin(&store, "digest", user, 0);
        store.renew_hash(&former, "hash").expect("a database");
        assert_eq!(store.change_password(&former, "new"), Ok(true));
        store.renew_hash(&former, "hash of the former").expect("a database");
        let user = || store.user(1).expect("a database").expect("a member");
        assert_eq!(user().password, "new");
        assert_eq!(begin(&former), Ok(false), "the password was changed");
        assert_eq!(store.change_password(&former, "newer"), Ok(false));
        assert_eq!(store.remove_user(&former), Ok(false));
        let verified = user();
        for disabled in [true, false] {
            store.set_disabled(1, disabled).expect("a database");
            assert_eq!(begin(&verified), Ok(false), "the member was disabled");
        }
        let verified = user();
        assert_eq!(begin(&verified), Ok(true));
        assert_eq!(store.remove_user(&verified), Ok(true));
        assert_eq!(begin(&verified), Ok(false), "the member was removed");
        assert_eq!(sessions.find(&store, "digest", 0), Ok(None));
    }
}
