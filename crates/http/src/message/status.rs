//! Status codes (RFC 9110 §15).

use super::field::FieldValue;

/// The media type of text that the server writes.
pub const PLAIN_TEXT: FieldValue<'static> = FieldValue::constant("text/plain; charset=utf-8");

/// Passes the status codes that the server sends, with their reason phrases, to another macro.
macro_rules! with_statuses {
    ($macro:ident) => {
        $macro! {
            200 "OK"
            201 "Created"
            204 "No Content"
            206 "Partial Content"
            301 "Moved Permanently"
            302 "Found"
            303 "See Other"
            304 "Not Modified"
            307 "Temporary Redirect"
            308 "Permanent Redirect"
            400 "Bad Request"
            401 "Unauthorized"
            403 "Forbidden"
            404 "Not Found"
            405 "Method Not Allowed"
            406 "Not Acceptable"
            408 "Request Timeout"
            409 "Conflict"
            410 "Gone"
            411 "Length Required"
            412 "Precondition Failed"
            413 "Content Too Large"
            414 "URI Too Long"
            415 "Unsupported Media Type"
            416 "Range Not Satisfiable"
            417 "Expectation Failed"
            421 "Misdirected Request"
            422 "Unprocessable Content"
            429 "Too Many Requests"
            431 "Request Header Fields Too Large"
            500 "Internal Server Error"
            501 "Not Implemented"
            503 "Service Unavailable"
            505 "HTTP Version Not Supported"
        }
    };
}
pub(crate) use with_statuses;

macro_rules! reasons {
    ($($code:literal $reason:literal)*) => {
                /// Returns the reason phrase of `status` (RFC 9110 §15); empty if the server never sends the
                /// status.
        pub const fn reason(status: u16) -> &'static str {
            match status {
                $($code => $reason,)*
                _ => "",
            }
        }
    };
}

with_statuses!(reasons);
