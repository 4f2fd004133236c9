//! Sessions: where they are kept, and how long they live.

use std::sync::Mutex;
use std::time::Duration;

use crate::store::{Fault, Session, Store};

/// How long a session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Without being used.
    pub idle: Duration,
    /// In all.
    pub absolute: Duration,
}

/// Between two cleanings of the table.
const CLEANED_EVERY: i64 = 600;
/// How exactly it is kept when a session was last used, in seconds: each use would be a write otherwise.
const SEEN_TO: i64 = 60;

/// Where sessions are kept.
#[derive(Debug)]
pub(crate) enum Place {
    /// In the database of the members.
    Database,
    #[cfg(feature = "redis")]
    Redis(Box<crate::redis::Redis>),
}

#[derive(Debug)]
pub(crate) struct Sessions {
    place: Place,
    idle: i64,
    absolute: i64,
    /// When the table was last cleaned.
    cleaned: Mutex<i64>,
}

impl Sessions {
    pub(crate) fn new(place: Place, lifetime: Lifetime) -> Sessions {
        let seconds = |length: Duration| i64::try_from(length.as_secs()).unwrap_or(i64::MAX / 4).max(1);
        let (idle, absolute) = (seconds(lifetime.idle), seconds(lifetime.absolute));
        Sessions { place, idle, absolute, cleaned: Mutex::new(0) }
    }

    /// The member whose session this is, while it lives.
    pub(crate) fn find(&self, store: &Store, digest: &str, now: i64) -> Result<Option<i64>, Fault> {
        let found = match &self.place {
            Place::Database => store.session(digest)?,
            #[cfg(feature = "redis")]
            Place::Redis(redis) => redis.find(digest)?,
        };
        let Some(session) = found else { return Ok(None) };
        if now - session.created >= self.absolute || now - session.seen >= self.idle {
            self.end(store, digest)?;
            return Ok(None);
        }
        if now - session.seen >= SEEN_TO.min(self.idle / 4) {
            match &self.place {
                Place::Database => store.touch_session(digest, now).map(drop)?,
                #[cfg(feature = "redis")]
                Place::Redis(redis) => {
                    redis.keep(digest, Session { seen: now, ..session }, self.left(session, now))?
                }
            }
        }
        Ok(Some(session.user))
    }

    pub(crate) fn begin(&self, store: &Store, digest: &str, user: i64, now: i64) -> Result<(), Fault> {
        let session = Session { user, created: now, seen: now };
        match &self.place {
            Place::Database => {
                self.clean(store, now)?;
                store.add_session(digest, session).map(drop)
            }
            #[cfg(feature = "redis")]
            Place::Redis(redis) => redis.keep(digest, session, self.left(session, now)),
        }
    }

    pub(crate) fn end(&self, store: &Store, digest: &str) -> Result<(), Fault> {
        match &self.place {
            Place::Database => store.remove_session(digest).map(drop),
            #[cfg(feature = "redis")]
            Place::Redis(redis) => redis.end(digest),
        }
    }

    /// Ends all sessions of a member but the one that is `kept`.
    pub(crate) fn end_others(&self, store: &Store, user: i64, kept: &str) -> Result<(), Fault> {
        match &self.place {
            Place::Database => store.remove_sessions(user, kept).map(drop),
            #[cfg(feature = "redis")]
            Place::Redis(redis) => redis.end_others(user, kept),
        }
    }

    /// How many live sessions a member has.
    pub(crate) fn count(&self, store: &Store, user: i64, now: i64) -> Result<u64, Fault> {
        match &self.place {
            Place::Database => store.count_sessions(user, now - self.absolute, now - self.idle),
            #[cfg(feature = "redis")]
            Place::Redis(redis) => redis.count(user),
        }
    }

    /// Removes what has outlived itself, now and then.
    fn clean(&self, store: &Store, now: i64) -> Result<(), Fault> {
        {
            let mut cleaned = self.cleaned.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if now - *cleaned < CLEANED_EVERY {
                return Ok(());
            }
            *cleaned = now;
        }
        store.remove_old_sessions(now - self.absolute, now - self.idle).map(drop)
    }

    /// Seconds that a session would live if nobody used it again.
    #[cfg(feature = "redis")]
    fn left(&self, session: Session, now: i64) -> i64 {
        self.idle.min(session.created + self.absolute - now).max(1)
    }
}
