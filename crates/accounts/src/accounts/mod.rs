//! Every [`Query`] and its reply. Calls block on the database and on hashes.

mod manage;

use crate::ask::{ClientIdentity, MOST_TRIED, Query, Refused, Reply};
use crate::clock::{milliseconds, seconds};
use crate::filter::Filter;
use crate::names::MemberName;
use crate::passwords::{self, Cost, Hasher};
use crate::sessions::{Lifetime, Sessions};
use crate::store::url::DatabaseUrl;
use crate::store::{Member, MemberStore, StoreError};
use crate::throttle::Throttle;
use crate::token;

/// The visitors that can register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// All visitors.
    #[default]
    Open,
    /// Visitors with an invitation.
    Invitation,
    /// None: `tenfold users add` creates accounts.
    Closed,
}

/// The rules for accounts.
#[derive(Clone, Debug)]
pub struct AccountPolicy {
    /// The visitors that can register.
    pub registration: Registration,
    /// The least number of characters of a password.
    pub least_password: usize,
    /// The cost of a password hash.
    pub cost: Cost,
    /// The lifetimes of a session.
    pub lifetime: Lifetime,
    /// Whether attempts are throttled.
    pub throttle: bool,
}

/// The members of a site.
#[derive(Debug)]
pub struct Accounts {
    pub(crate) store: MemberStore,
    pub(crate) sessions: Sessions,
    pub(crate) hasher: Hasher,
    pub(crate) policy: AccountPolicy,
    throttle: Throttle,
    filter: Filter,
}

impl Accounts {
    /// Opens the database with at most `connections`. An error is one line.
    pub fn open(url: &DatabaseUrl, connections: usize, policy: AccountPolicy) -> Result<Accounts, String> {
        let hasher = Hasher::new(policy.cost)?;
        let store = MemberStore::open(url, connections)?;
        let sessions = Sessions::new(policy.lifetime);
        let throttle = Throttle::new(policy.throttle);
        let filter = Filter(store.filter().to_owned());
        Ok(Accounts { store, sessions, hasher, policy, throttle, filter })
    }

    /// The reply to a query, or an error for the log; the client then receives [`Reply::Unavailable`].
    pub fn answer(&self, request: Query) -> Result<Reply, StoreError> {
        match request {
            Query::Filter => Ok(Reply::Filter(self.filter.clone())),
            Query::Check { session } => self.check(self.live(&session)?),
            Query::Overview { session } => self.overview(self.live(&session)?),
            Query::Login { name, password, from, former } => {
                self.login(&name, &password, &from, former.as_deref())
            }
            Query::Register { name, password, invitation, from } => {
                self.register(&name, &password, invitation.as_deref(), &from)
            }
            Query::Logout { session } => self.end_all(&session).map(|()| Reply::Done),
            Query::EndOthers { session } => self.end_others(self.live(&session)?),
            Query::ChangePassword { session, old, new, from } => {
                self.change_password(self.live(&session)?, &old, &new, &from)
            }
            Query::Remove { session, password, from } => self.remove(self.live(&session)?, &password, &from),
        }
    }

    /// The first session with a member. A single session is returned without a lookup.
    fn live<'s>(&self, sessions: &'s str) -> Result<&'s str, StoreError> {
        let all: Vec<_> = sessions.split(' ').take(MOST_TRIED).collect();
        for session in all.iter().filter(|_| all.len() > 1) {
            if self.member(session)?.is_some() {
                return Ok(session);
            }
        }
        Ok(all.first().copied().unwrap_or(sessions))
    }

    fn end_all(&self, sessions: &str) -> Result<(), StoreError> {
        sessions
            .split(' ')
            .take(MOST_TRIED)
            .try_for_each(|session| self.store.remove_session(session).map(drop))
    }

    fn check(&self, session: &str) -> Result<Reply, StoreError> {
        Ok(match self.member(session)? {
            Some(user) => Reply::Member { name: user.name },
            None => Reply::Nobody,
        })
    }

    fn overview(&self, session: &str) -> Result<Reply, StoreError> {
        let Some(user) = self.member(session)? else { return Ok(Reply::Nobody) };
        let others = self.sessions.count(&self.store, user.id, seconds())?.saturating_sub(1);
        Ok(Reply::Overview { name: user.name, since: user.created, others })
    }

    /// The member of the session; `None` if the member was changed, disabled or removed after it began.
    fn member(&self, session: &str) -> Result<Option<Member>, StoreError> {
        let Some(found) = self.sessions.find(&self.store, session, seconds())? else { return Ok(None) };
        let user = self.store.user(found.user)?.filter(|user| user.admits(&found));
        if user.is_none() {
            self.store.remove_session(session)?;
        }
        Ok(user)
    }

    /// Logs in. An unknown name takes the same steps and the same time as a known name.
    fn login(
        &self,
        name: &str,
        password: &str,
        from: &ClientIdentity,
        former: Option<&str>,
    ) -> Result<Reply, StoreError> {
        if password.len() > passwords::LONGEST {
            return Ok(Reply::Refused(Refused::Wrong));
        }
        // An invalid name becomes a key that no member has, so it takes the same time.
        let key = MemberName::parse(name).map_or_else(|_| " ".into(), |name| name.key().to_owned());
        let shown = from.known.iter().flat_map(|all| all.split(' ').take(MOST_TRIED));
        let known = { shown }.find(|shown| token::is_known(self.store.secret(), shown, &key));
        let from = ClientIdentity { known: known.map(str::to_owned), ..from.clone() };
        let admitted = match self.throttle.login(&from, &key, known.is_some(), milliseconds()) {
            Ok(admitted) => admitted,
            Err(after) => return Ok(Reply::Throttled { after }),
        };
        let user = self.store.user_by_key(&key)?;
        let other = self.store.another_user(token::place_of(self.store.secret(), &key))?;
        let hash = |user: &Option<Member>| user.as_ref().map(|user| user.password.clone());
        let verified = self.hasher.verify(password, hash(&user).as_deref(), hash(&other).as_deref());
        let Some(user) = user.filter(|user| verified && !user.disabled) else {
            return Ok(Reply::Refused(Refused::Wrong));
        };
        self.throttle.succeeded(admitted);
        if self.hasher.is_outdated(&user.password) {
            self.store.renew_hash(&user, &self.hash(password)?)?;
        }
        if let Some(former) = former {
            self.end_all(former)?;
        }
        self.welcome(&user)
    }

    /// Begins a session of a verified member, unless the member has changed since `user` was read.
    fn welcome(&self, user: &Member) -> Result<Reply, StoreError> {
        let token = self.filter.issue().map_err(StoreError::Failed)?;
        let nonce = token::random().map_err(StoreError::Failed)?;
        if !self.sessions.begin(&self.store, &token::digest(&token), user, seconds())? {
            return Ok(Reply::Refused(Refused::Wrong));
        }
        Ok(Reply::Welcome { token, known: token::known(self.store.secret(), &nonce, &user.key) })
    }

    fn register(
        &self,
        name: &str,
        password: &str,
        code: Option<&str>,
        from: &ClientIdentity,
    ) -> Result<Reply, StoreError> {
        let refused = |why| Ok(Reply::Refused(why));
        let invitation = match (self.policy.registration, code) {
            (Registration::Closed, _) => return refused(Refused::Closed),
            (Registration::Open, _) => None,
            (Registration::Invitation, code) => {
                Some(token::digest(&token::spelled_invitation(code.unwrap_or_default())))
            }
        };
        let name = match MemberName::parse(name) {
            Ok(name) => name,
            Err(why) => return refused(Refused::InvalidName(why)),
        };
        if let Err(why) = passwords::check(password, name.shown(), self.policy.least_password) {
            return refused(Refused::InvalidPassword(why));
        }
        if let Err(after) = self.throttle.register(from, milliseconds()) {
            return Ok(Reply::Throttled { after });
        }
        // Only visitors with an invitation learn whether a name is taken.
        if let Some(digest) = &invitation
            && !self.store.has_invitation(digest, seconds())?
        {
            return refused(Refused::Invitation);
        }
        if self.store.user_by_key(name.key())?.is_some() {
            return refused(Refused::NameTaken);
        }
        match self.add(&name, password, invitation.as_deref()) {
            Ok(true) => Ok(Reply::Done),
            Ok(false) => refused(Refused::Invitation),
            // Another request registered the name meanwhile.
            Err(StoreError::Taken) => refused(Refused::NameTaken),
            Err(fault) => Err(fault),
        }
    }

    /// Stores a new member. Returns false if an invitation is required and invalid.
    pub(crate) fn add(
        &self,
        name: &MemberName,
        password: &str,
        invitation: Option<&str>,
    ) -> Result<bool, StoreError> {
        let user = Member {
            id: token::row_number().map_err(StoreError::Failed)?,
            name: name.shown().to_owned(),
            key: name.key().to_owned(),
            look: name.look().to_owned(),
            password: self.hash(password)?,
            created: seconds(),
            disabled: false,
            epoch: 0,
        };
        self.store.add_user(&user, invitation, seconds())
    }

    fn end_others(&self, session: &str) -> Result<Reply, StoreError> {
        let Some(user) = self.member(session)? else { return Ok(Reply::Nobody) };
        self.store.remove_sessions(user.id, session)?;
        Ok(Reply::Done)
    }

    fn change_password(
        &self,
        session: &str,
        old: &str,
        new: &str,
        from: &ClientIdentity,
    ) -> Result<Reply, StoreError> {
        let mut user = match self.verified(session, old, from)? {
            Ok(user) => user,
            Err(reply) => return Ok(reply),
        };
        if let Err(why) = passwords::check(new, &user.name, self.policy.least_password) {
            return Ok(Reply::Refused(Refused::InvalidPassword(why)));
        }
        if !self.store.change_password(&user, &self.hash(new)?)? {
            return Ok(Reply::Nobody);
        }
        user.epoch += 1;
        self.store.remove_sessions(user.id, "")?;
        self.welcome(&user)
    }

    fn remove(&self, session: &str, password: &str, from: &ClientIdentity) -> Result<Reply, StoreError> {
        let user = match self.verified(session, password, from)? {
            Ok(user) => user,
            Err(reply) => return Ok(reply),
        };
        let removed = self.store.remove_user(&user)?;
        Ok(if removed { Reply::Done } else { Reply::Nobody })
    }

    /// The member of a session, if the password is right, or the reply to send.
    fn verified(
        &self,
        session: &str,
        password: &str,
        from: &ClientIdentity,
    ) -> Result<Result<Member, Reply>, StoreError> {
        let Some(user) = self.member(session)? else { return Ok(Err(Reply::Nobody)) };
        // The sessions of a member count as one known browser. The text of `session` is no key, because MySQL finds a
        // session by several spellings of its digest.
        let from = ClientIdentity { known: Some(format!("member {}", user.id)), ..from.clone() };
        let admitted = match self.throttle.login(&from, &user.key, true, milliseconds()) {
            Ok(admitted) => admitted,
            Err(after) => return Ok(Err(Reply::Throttled { after })),
        };
        if password.len() > passwords::LONGEST || !self.hasher.verify(password, Some(&user.password), None) {
            return Ok(Err(Reply::Refused(Refused::Wrong)));
        }
        self.throttle.succeeded(admitted);
        Ok(Ok(user))
    }

    fn hash(&self, password: &str) -> Result<String, StoreError> {
        self.hasher.hash(password).map_err(StoreError::Failed)
    }
}
