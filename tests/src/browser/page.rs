//! One page of the browser: navigation, evaluation and screenshots.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::DevTools;
use crate::binary;

/// The longest wait for a page to load.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open page; dropping it ends the browser.
#[derive(Debug)]
pub struct BrowserPage {
    browser: DevTools,
    session: String,
}

impl BrowserPage {
    /// Opens a new browser with an empty page.
    #[track_caller]
    pub fn open() -> BrowserPage {
        let mut browser = DevTools::start();
        let target = browser.call(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call(None, "Target.attachToTarget", attach);
        let session = attached["sessionId"].as_str().expect("a session has a name").to_owned();
        let mut page = BrowserPage { browser, session };
        for domain in ["Page", "Network", "Runtime", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page
    }

    /// Sends a command to this page.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.browser.call(Some(&self.session), method, parameters)
    }

    /// Navigates to a URL and waits until it is loaded. Earlier events are discarded.
    #[track_caller]
    pub fn go(&mut self, url: &str) {
        self.browser.forget();
        let went = self.call("Page.navigate", json!({ "url": url }));
        assert!(went["errorText"].is_null(), "{url}: {}", went["errorText"]);
        self.wait_for_load(url);
    }

    /// Runs an expression that navigates, and waits until the new page is loaded. Earlier events are discarded.
    #[track_caller]
    pub fn go_by(&mut self, expression: &str) {
        self.browser.forget();
        self.evaluate(expression);
        self.wait_for_load(expression);
    }

    /// Reloads the page. Earlier events are discarded.
    #[track_caller]
    pub fn reload(&mut self) {
        self.browser.forget();
        self.call("Page.reload", json!({}));
        self.wait_for_load("the page again");
    }

    #[track_caller]
    fn wait_for_load(&mut self, what: &str) {
        let begin = Instant::now();
        while self.browser.events("Page.loadEventFired").is_empty() {
            assert!(begin.elapsed() < PATIENCE, "{what}: not loaded within {PATIENCE:?}");
            self.browser.listen(Duration::from_millis(50));
        }
        self.browser.listen(Duration::from_millis(200));
    }

    /// The URL of the page; `None` while another page replaces it.
    #[track_caller]
    pub fn place(&mut self) -> Option<String> {
        let parameters = json!({ "expression": "location.pathname", "returnByValue": true });
        let outcome = self.browser.try_call(Some(&self.session), "Runtime.evaluate", parameters).ok()?;
        outcome["result"]["value"].as_str().map(str::to_owned)
    }

    /// Evaluates an expression in the page, and awaits a promise.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true
        });
        let mut outcome = self.call("Runtime.evaluate", parameters);
        let thrown = &outcome["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        outcome["result"]["value"].take()
    }

    /// Sets width and height of the window, optionally as on a phone.
    #[track_caller]
    pub fn resize(&mut self, width: u32, height: u32, mobile: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    #[track_caller]
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Errors since the last navigation: failed or refused requests, console errors, exceptions. Requests that the
    /// browser cancelled do not count, such as those of a video that seeks.
    pub fn complaints(&mut self) -> Vec<String> {
        self.browser.listen(Duration::from_millis(100));
        let failed = self.browser.events("Network.loadingFailed").into_iter();
        let failed =
            failed.filter(|event| event["canceled"] != true && event["errorText"] != "net::ERR_ABORTED");
        let refused = self.browser.events("Network.responseReceived").into_iter();
        let refused = refused.filter(|event| event["response"]["status"].as_u64() >= Some(400));
        let logged = self.browser.events("Log.entryAdded").into_iter();
        let logged = logged.filter(|event| event["entry"]["level"] == "error");
        let said = self.browser.events("Runtime.consoleAPICalled").into_iter();
        let said = said.filter(|event| event["type"] == "error");
        let thrown = self.browser.events("Runtime.exceptionThrown").into_iter();
        failed.chain(refused).chain(logged).chain(said).chain(thrown).map(Value::to_string).collect()
    }

    /// Saves a screenshot as `target/screenshots/NAME.png`.
    #[track_caller]
    pub fn screenshot(&mut self, name: &str) {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let encoded = picture["data"].as_str().expect("a picture has data");
        let decoded = data_encoding::BASE64.decode(encoded.as_bytes()).expect("pictures come in base64");
        let folder = binary::target().join("screenshots");
        fs::create_dir_all(&folder).expect("the target folder can be written to");
        fs::write(folder.join(format!("{name}.png")), decoded).expect("the target folder can be written to");
    }
}
