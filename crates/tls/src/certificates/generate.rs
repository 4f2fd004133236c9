//! Certificates for tests.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    SignatureAlgorithm,
};
use rustls::pki_types::CertificateDer;
use x509_parser::time::ASN1Time;

/// A self-signed certificate.
pub(crate) struct TestPair {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

/// Returns a certificate that is valid for ten days, from yesterday on.
pub(crate) fn pair(names: &[&str], algorithm: &'static SignatureAlgorithm) -> TestPair {
    let now = ASN1Time::now().timestamp();
    pair_between(names, algorithm, now - 86_400, now + 9 * 86_400)
}

/// Returns a certificate that is valid between two times, in seconds since 1970.
pub(crate) fn pair_between(
    names: &[&str],
    algorithm: &'static SignatureAlgorithm,
    not_before: i64,
    not_after: i64,
) -> TestPair {
    let moment = |seconds| ASN1Time::from_timestamp(seconds).expect("a moment of a test").to_datetime();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names of a test");
    params.distinguished_name = DistinguishedName::new();
    (params.not_before, params.not_after) = (moment(not_before), moment(not_after));
    let key = KeyPair::generate_for(algorithm).expect("a key can be made");
    let certificate = params.self_signed(&key).expect("it can be signed");
    TestPair {
        certificate_pem: certificate.pem(),
        certificate: certificate.into(),
        key_pem: key.serialize_pem(),
    }
}

/// A certificate and its issuer's certificate, as PEM.
pub(crate) struct Issued {
    pub(crate) leaf: String,
    pub(crate) issuer: String,
}

/// Returns a certificate signed by a test authority.
pub(crate) fn issued(names: &[&str]) -> Issued {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(DnType::CommonName, "an authority of a test");
    let authority = CertifiedIssuer::self_signed(root, KeyPair::generate().expect("a key can be made"));
    let authority = authority.expect("it can be signed");
    let mut leaf = CertificateParams::new(names).expect("names of a test");
    leaf.distinguished_name = DistinguishedName::new();
    let key = KeyPair::generate().expect("a key can be made");
    let certificate = leaf.signed_by(&key, &authority).expect("it can be signed");
    Issued { leaf: certificate.pem(), issuer: authority.pem() }
}
