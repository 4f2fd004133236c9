//! Database servers with TLS.

use std::fs;

use super::{Database, DatabaseProduct, PATIENCE, run};
use crate::seal::certificate_folder;
use crate::time::eventually;
use crate::tools;

impl Database {
    /// Makes it accept TLS, with the certificate of this run. A MariaDB is started again.
    #[track_caller]
    pub fn accept_tls(&self) {
        for (name, file) in [("server.crt", "cert.pem"), ("server.key", "key.pem")] {
            let content = fs::read(certificate_folder().join(file)).expect("it was made");
            let copy = self.folder.write(name, content);
            // Only its user may read the key.
            let mut install = self.program(&tools::program("install"));
            run(install.args(["-m", "600"]).arg(copy).arg(format!("{}/{name}", self.data())));
        }
        if self.kind == DatabaseProduct::Mariadb {
            self.stop();
            return self.begin();
        }
        for sql in ["ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"] {
            self.query(sql).unwrap_or_else(|why| panic!("{why}"));
        }
        let is_on = |shown: String| (shown.trim() == "on").then_some(());
        eventually(PATIENCE, "PostgreSQL accepts TLS", || self.query("SHOW ssl").ok().and_then(is_on));
    }
}
