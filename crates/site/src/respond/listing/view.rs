//! The query of a listing: order, filter and view. The links of the page repeat it.

use crate::rules::path;

/// The query of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) order: SortOrder,
    /// Text that the shown names contain, in lower case; empty: all names are shown.
    pub(super) filter: String,
    /// Whether images and media are shown as a grid.
    pub(super) grid: bool,
}

/// The order of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SortOrder {
    pub(super) by: By,
    pub(super) descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Name,
    Size,
    Date,
}

impl View {
    /// Parses a query such as `sort=size&order=desc&filter=img`. The default is every name, ascending by name. Unknown
    /// values are ignored.
    pub(super) fn of(query: &str) -> View {
        let order = SortOrder { by: By::Name, descending: false };
        let mut view = View { order, filter: String::new(), grid: false };
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sort", "name")) => view.order.by = By::Name,
                Some(("sort", "size")) => view.order.by = By::Size,
                Some(("sort", "date")) => view.order.by = By::Date,
                Some(("order", order)) => view.order.descending = order == "desc",
                Some(("view", view_as)) => view.grid = view_as == "grid",
                Some(("filter", text)) => view.filter = filter_of(text),
                _ => {}
            }
        }
        view
    }

    /// Whether a name is shown.
    pub(super) fn admits(&self, name: &str) -> bool {
        self.filter.is_empty() || name.to_lowercase().contains(&self.filter)
    }

    /// Returns the pairs of the query without defaults, as text. A form sends them in this order.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let is_default = self.order == SortOrder { by: By::Name, descending: false };
        let by = (!is_default).then_some(self.order.by.word());
        let descending = self.order.descending.then_some("desc");
        let filter = Some(&self.filter[..]).filter(|text| !text.is_empty());
        let grid = self.grid.then_some("grid");
        let pairs = [("sort", by), ("order", descending), ("filter", filter), ("view", grid)];
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Returns the query as the end of a URL, with its `?`; empty for the default view.
    pub(super) fn query(&self) -> String {
        let mut query = String::new();
        for (name, value) in self.pairs() {
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(name);
            query.push('=');
            encode_value(value, &mut query);
        }
        query
    }

    /// Returns the link to this view of the page. An empty link would keep the query of the page.
    pub(super) fn link(&self) -> String {
        Some(self.query()).filter(|query| !query.is_empty()).unwrap_or_else(|| "?sort=name".to_owned())
    }
}

impl By {
    /// Returns its word in a query.
    pub(super) fn word(self) -> &'static str {
        match self {
            By::Name => "name",
            By::Size => "size",
            By::Date => "date",
        }
    }
}

/// Returns the text of a filter as forms encode it. No shown name contains characters that paths refuse.
fn filter_of(encoded: &str) -> String {
    path::decode(&encoded.replace('+', " ")).unwrap_or_default().trim().to_lowercase()
}

/// Appends a value of a query, percent-encoded.
pub(super) fn encode_value(value: &str, query: &mut String) {
    for byte in value.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => query.push(char::from(byte)),
            false => query.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_has_the_order_and_unknown_orders_are_ignored() {
        for (query, by, descending) in [
            ("", By::Name, false),
            ("sort=size", By::Size, false),
            ("sort=date&order=desc", By::Date, true),
            ("order=desc&x=y", By::Name, true),
            ("sort=colour&order=up&sort", By::Name, false),
        ] {
            assert_eq!(View::of(query).order, SortOrder { by, descending }, "{query}");
        }
    }

    #[test]
    fn a_filter_is_text_of_a_form_and_survives_its_link() {
        for (query, filter) in [
            ("filter=IMG", "img"),
            ("filter=a+b%2Bc", "a b+c"),
            ("filter=%C3%9Cber%26", "über&"),
            ("filter=+", ""),
            ("filter=100%25", "100%"),
            // Malformed, or in no name.
            ("filter=100%", ""),
            ("filter=%00", ""),
            ("filter=%5C", ""),
        ] {
            let view = View::of(query);
            assert_eq!(view.filter, filter, "{query}");
            assert_eq!(View::of(view.query().trim_start_matches('?')), view, "{query}");
        }
        let view = View::of("view=grid&order=desc&sort=date&filter=A%22%3E<&x=y");
        assert_eq!(view.query(), "?sort=date&order=desc&filter=a%22%3E%3C&view=grid");
        assert_eq!(View::of("sort=name&order=asc&filter=").query(), "");
    }

    #[test]
    fn a_filter_ignores_case() {
        let view = View::of("filter=s%C3%9C");
        assert!(view.admits("Süden") && view.admits("xSÜ") && !view.admits("sud"));
        assert!(View::of("").admits("any"));
    }
}
