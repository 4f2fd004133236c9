//! Passwords of realms: verification, caching and bounds.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use tenfold_http::h1::parse_request;

/// Returns a realm of `alice` with the password `secret`, hashed by bcrypt with the least possible work, and
/// sets this thread's clock to 1000.
fn realm() -> Realm {
    realm_of("alice")
}

/// The same for another user, because all tests of a process share the memory of right passwords.
fn realm_of(user: &str) -> Realm {
    clock::set(Instant(1000), 1);
    let hash =
        StoredHash::new("$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC").expect("a hash");
    Realm::new("Members", BTreeMap::from([(user.to_owned(), hash)])).expect("legal")
}

fn claim(realm: &Realm, name_and_password: &str) -> Claim {
    let encoded = Base64::encode_string(name_and_password.as_bytes());
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: basic {encoded}\r\n\r\n");
    parse_request(&mut request.into_bytes(), |request| realm.claim(&request.expect("the request is good")))
}

#[test]
fn a_password_is_verified_once_and_remembered_for_a_while() {
    let realm = realm();
    let Claim::Unknown(credentials) = claim(&realm, "alice:secret") else { panic!("it is not verified yet") };
    assert_eq!(realm.verify(&credentials, None), PasswordVerdict::Right);
    assert!(matches!(claim(&realm, "alice:secret"), Claim::Allowed));
    assert!(matches!(claim(&realm, "alice:secreT"), Claim::Unknown(_)));
    clock::set(Instant(1000 + ALLOWED_FOR), 1);
    assert!(matches!(claim(&realm, "alice:secret"), Claim::Unknown(_)));
}

#[test]
fn a_wrong_password_and_a_wrong_name_are_refused_and_remembered_for_less() {
    let realm = realm();
    for wrong in ["alice:wrong", "bob:secret", "alice:", ":secret", "alice:secret "] {
        let Claim::Unknown(credentials) = claim(&realm, wrong) else { panic!("{wrong}") };
        assert_eq!(realm.verify(&credentials, None), PasswordVerdict::Wrong, "{wrong}");
        assert!(matches!(claim(&realm, wrong), Claim::Refused), "{wrong}");
    }
    clock::set(Instant(1000 + REFUSED_FOR), 1);
    assert!(matches!(claim(&realm, "alice:wrong"), Claim::Unknown(_)));
}

#[test]
fn remembered_passwords_are_bounded() {
    let realm = realm();
    for number in 0..3 * MOST_KNOWN {
        let Claim::Unknown(credentials) = claim(&realm, &format!("alice:{number}")) else {
            panic!("it is new")
        };
        realm.remember(&credentials, false);
        assert!(realm.lock().by_mark.len() <= MOST_KNOWN);
    }
}

#[test]
fn h85_guesses_of_strangers_do_not_make_a_password_unknown_that_was_right() {
    let realm = realm();
    let claimed = |name_and_password: &str| match claim(&realm, name_and_password) {
        Claim::Unknown(credentials) => credentials,
        _ => panic!("it is cached"),
    };
    realm.remember(&claimed("alice:secret"), true);
    clock::set(Instant(1000 + ALLOWED_FOR), 1);
    for number in 0..2 * MOST_KNOWN {
        realm.remember(&claimed(&format!("nobody{number}:wrong")), false);
    }
    assert!(claimed("alice:secret").were_right);
}

#[test]
fn unknown_names_take_the_time_of_different_users_and_each_always_of_the_same() {
    let hash = |cost: &str| {
        let text = "$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC".replace("$04$", cost);
        StoredHash::new(&text).expect("a hash")
    };
    let users = || BTreeMap::from([("ann".to_owned(), hash("$04$")), ("zoe".to_owned(), hash("$12$"))]);
    let realms = [(); 2].map(|()| Realm::new("Members", users()).expect("legal"));
    let mut expensive = 0;
    for number in 0..100 {
        let name = format!("nobody{number}");
        let [first, second] = [&realms[0], &realms[1]].map(|realm| realm.stand_in(&name).text().to_owned());
        assert_eq!(first, second, "the stand-in differs between processes");
        expensive += usize::from(first.starts_with("$2y$12$"));
    }
    assert!((20..=80).contains(&expensive), "{expensive} of 100 names take the longer time");
}

#[test]
fn malformed_credentials_are_refused() {
    let realm = realm();
    for value in ["", "Basic", "Basic !", "Bearer YTpi", "Basic YWxpY2U=", "Basic YTpi, Basic YTpi"] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {value}\r\n\r\n");
        parse_request(&mut request.into_bytes(), |request| {
            let claim = realm.claim(&request.expect("the request is good"));
            assert!(matches!(claim, Claim::Refused), "{value}");
        });
    }
    let long = "a".repeat(MOST_CREDENTIALS);
    assert!(matches!(claim(&realm, &format!("a:{long}")), Claim::Refused));
    let request =
        "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YTpi\r\nAuthorization: Basic YTpi\r\n\r\n";
    parse_request(&mut request.as_bytes().to_vec(), |request| {
        assert!(matches!(realm.claim(&request.expect("the request is good")), Claim::Refused));
    });
}

#[test]
fn unusable_realms_are_refused() {
    let users = || BTreeMap::from([("a".to_owned(), realm().users[0].1.clone())]);
    assert!(Realm::new("Members", BTreeMap::new()).is_err());
    for name in ["", "a\"b", "a\r\nb", "a\\"] {
        assert!(Realm::new(name, users()).is_err(), "{name:?}");
    }
    let colon = BTreeMap::from([("a:b".to_owned(), realm().users[0].1.clone())]);
    assert!(Realm::new("Members", colon).is_err());
}

/// Admits a number of attempts, and records their users.
struct Few {
    left: AtomicUsize,
    users: Mutex<Vec<RealmUser>>,
    right: AtomicUsize,
}

impl Few {
    fn of(count: usize) -> Few {
        Few { left: AtomicUsize::new(count), users: Mutex::default(), right: AtomicUsize::new(0) }
    }
}

impl Attempts for Few {
    fn admit(&self, user: &RealmUser) -> Result<(), u64> {
        let taken = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        self.users.lock().expect("not poisoned").push(user.clone());
        taken.map(drop).map_err(|_| 7)
    }

    fn succeeded(&self) {
        self.right.fetch_add(1, Ordering::SeqCst);
    }
}

fn unknown(realm: &Realm, name_and_password: &str) -> Credentials {
    match claim(realm, name_and_password) {
        Claim::Unknown(credentials) => credentials,
        Claim::Allowed | Claim::Refused => panic!("{name_and_password} is cached"),
    }
}

#[test]
fn h85_an_attempt_that_is_not_admitted_is_not_verified() {
    let realm = realm_of("zoe");
    let attempts = Few::of(1);
    let long = "x".repeat(100);
    assert_eq!(realm.verify(&unknown(&realm, &format!("{long}:a")), Some(&attempts)), PasswordVerdict::Wrong);
    let refused = unknown(&realm, "zoe:secret");
    assert_eq!(realm.verify(&refused, Some(&attempts)), PasswordVerdict::Throttled(7));
    assert_eq!(
        realm.verify(&unknown(&realm, "zoe:secret"), None),
        PasswordVerdict::Right,
        "a throttled attempt was cached"
    );
    let users = attempts.users.lock().expect("not poisoned");
    assert_eq!(users[0], RealmUser { name: "x".repeat(COUNTED_NAME), known: None });
    assert_eq!(users[1], RealmUser { name: "zoe".into(), known: None });
}

#[test]
fn h85_credentials_that_come_many_times_at_once_count_once() {
    let realm = realm();
    let attempts = Few::of(1);
    let all: Vec<_> = (0..8).map(|_| unknown(&realm, "alice:secret")).collect();
    std::thread::scope(|scope| {
        for credentials in &all {
            scope.spawn(|| assert_eq!(realm.verify(credentials, Some(&attempts)), PasswordVerdict::Right));
        }
    });
    assert_eq!(attempts.right.load(Ordering::SeqCst), 1);
    clock::set(Instant(1000 + ALLOWED_FOR), 1);
    let again = unknown(&realm, "alice:secret").user();
    assert!(again.known.is_some_and(|mark| mark.len() == 64), "an owner is not distinguished from a guess");
}

#[test]
fn former_passwords_are_not_guesses_after_a_reload() {
    let former = realm_of("carol");
    let name = "carol:secret";
    assert_eq!(former.verify(&unknown(&former, name), None), PasswordVerdict::Right);
    // Another configuration in another worker.
    let credentials = unknown(&realm_of("carol"), name);
    assert!(credentials.user().known.is_some(), "the owner has no attempts of its own");
    let users = BTreeMap::from([("bob".to_owned(), former.users[0].1.clone())]);
    let without = Realm::new("Members", users).expect("legal");
    assert_eq!(without.verify(&credentials, None), PasswordVerdict::Wrong, "the cached result is used");
    assert!(
        unknown(&realm_of("carol"), name).user().known.is_none(),
        "the wrong password did not clear the mark"
    );
}
