//! Source files that the text links to, as pages with line numbers.

use crate::document::{BOOK, head};
use crate::escape::html;
use crate::text::source_path;

/// The whole document. A line has the anchor `L` with its number.
pub(crate) fn source_page(file: &str, text: &str) -> String {
    let up = "../".repeat(source_path(file).matches('/').count());
    let lines = text.lines().enumerate();
    let lines: String =
        lines.map(|(at, line)| format!("<span id=\"L{}\">{}\n</span>", at + 1, html(line))).collect();
    let file = html(file);
    let head = head(&format!("{file} · {BOOK}"), &up);
    format!(
        r##"{head}</head>
<body class="book">
<a class="skip" href="#text">Skip to the text</a>
<header class="bar">
<nav class="places" aria-label="Site"><a href="{up}index.html">Book</a></nav>
<button class="theme" type="button" hidden>Theme</button>
</header>
<main id="text">
<h1 class="file">{file}</h1>
<pre class="source" tabindex="0"><code>{lines}</code></pre>
</main>
</body>
</html>
"##
    )
}
