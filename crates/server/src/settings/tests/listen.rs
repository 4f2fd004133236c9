//! Addresses in `listen`.

use super::*;

#[test]
fn an_address_has_short_forms() {
    let listen = |text| {
        let settings = flags(&[("listen", text)]).resolve().expect(text);
        settings.addresses().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(listen("8000"), ["127.0.0.1:8000"]);
    assert_eq!(listen("localhost:8000"), ["127.0.0.1:8000"]);
    assert_eq!(listen("0.0.0.0:8000"), ["0.0.0.0:8000"]);
    assert_eq!(listen("[::]:8000"), ["[::]:8000"]);
    assert_eq!(listen("http:8000"), ["127.0.0.1:8000"]);
    let all = listen(":8000");
    assert_eq!(all[0], "0.0.0.0:8000");
    assert!(all.len() == 1 || all[1..] == ["[::]:8000"], "{all:?}");
}

#[test]
fn a_port_in_the_file_is_a_number() {
    let mut settings = Settings::default();
    let mut problems = Vec::new();
    file::read_text(
        Path::new("x.toml"),
        "listen = [8000, \"unix:s\"]\nport = 80\n",
        &mut settings,
        &mut problems,
    );
    let addresses: Vec<_> = settings.addresses().map(ToString::to_string).collect();
    assert_eq!(addresses, ["127.0.0.1:8000", "unix:s"]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("did you mean listen?"), "{}", problems[0]);
}
