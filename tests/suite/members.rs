//! Members: a visitor's whole journey on every engine, and the numbered cases of `docs/internals/hardening.md` on every
//! database.

mod boundary;
mod browser;
mod encrypted;
mod hostile;
mod journey;
mod nodes;
mod outage;
mod routes;
mod sessions;
mod trouble;
mod unix_proxy;

use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{DatabaseProduct, fresh};
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{TempFolder, bytes};
use tenfold_tests::visitor::Visitor;

use boundary::*;
use browser::*;
use encrypted::*;
use hostile::*;
use journey::*;
use nodes::*;
use outage::*;
use routes::*;
use sessions::*;
use trouble::*;
use unix_proxy::*;

pub(crate) const THEME: Theme = Theme {
    name: "members",
    cases: cases![
        Own on WORKERS + ANOTHER: a_visitor_becomes_a_member_and_leaves;
        Own on DRIVERS + ANOTHER: a_browser_goes_all_the_way,
            h70_every_request_for_a_protected_file_is_checked,
            h82_members_pages_stay_private_after_an_interim_response,
            h83_no_route_leads_to_a_protected_file_without_a_login,
            h80_a_session_that_ends_behind_unread_responses_shows_nothing,
            h81_a_forged_cookie_is_rejected_in_the_worker;
        Own on DRIVERS + ANOTHER_CONCURRENT: h81_forged_cookies_do_not_block_members;
        Own on EPOLL + URING: h81_one_address_does_not_take_all_places_of_members;
        Once: h61_sql_in_every_field_is_text, h62_an_unknown_name_and_a_wrong_password_are_answered_alike,
            h63_guessing_is_throttled_and_the_owner_is_not_locked_out,
            h63_the_sessions_of_a_member_share_their_guesses, h64_a_flood_of_logins_does_not_delay_files,
            h65_a_session_changes_at_login_and_password_and_dies_at_logout,
            h66_cookies_are_as_safe_as_the_connection, h67_forms_of_other_sites_are_rejected,
            h68_one_name_is_registered_once, h63_h66_visitors_behind_a_unix_socket_are_told_apart,
            h80_a_login_in_flight_does_not_survive_a_change_of_the_member,
            a_session_that_is_used_does_not_end_early, a_fresh_login_works_at_once,
            a_member_has_32_sessions_at_most, h69_a_database_outage_and_recovery,
            h69_a_silent_database_holds_up_no_check, h69_a_locked_database,
            a_database_is_reachable_by_its_socket, invitations_let_one_in, the_users_command_manages_members,
            templates_can_be_replaced, an_unusable_database_is_a_one_line_error,
            h83_a_replacement_of_a_protected_folder_is_protected, accounts_over_tls,
            accounts_in_mariadb_over_tls, the_book_on_nodes, two_nodes_share_a_login,
            a_dead_accounts_process_is_replaced;
        OwnAsRoot on DRIVERS + ANOTHER: h78_the_user_of_the_workers_reads_neither_the_database_nor_memory;
        OnceAsRoot: h83_folders_closed_to_workers_stay_protected, h69_a_full_disk_loses_no_account,
            h69_a_full_database, h71_acknowledged_accounts_were_synced,
            h75_root_never_opens_files_planted_at_the_database,
            h75_root_follows_no_link_on_the_way_to_the_database,
            h75_targets_of_links_planted_beside_the_database_stay_roots,
            h75_only_a_database_of_the_workers_user_changes_its_owner,
            an_unwritable_database_folder_is_named_and_stays_empty,
            the_user_of_the_accounts_is_checked_and_a_shared_one_is_a_warning,
            h78_workers_share_two_counts_with_the_accounts,
            h76_invalid_messages_and_unread_replies_are_harmless,
            h77_an_accounts_process_that_hangs_is_replaced, h77_the_accounts_process_has_a_bound_of_memory,
            h78_without_root_the_memory_of_every_process_is_closed_to_the_same_user,
            h78_a_url_in_a_file_is_unknown_to_workers,
            h78_the_accounts_process_does_not_have_the_key_of_the_certificate;
        Many: h71_acknowledged_accounts_survive_a_kill;
    ],
};

/// An acceptable password.
const GOOD: &str = "violet tractor 81";

/// A site with a folder for members.
fn site() -> TempFolder {
    let folder = TempFolder::new("members");
    folder.write("site/index.html", "<h1>open</h1>");
    folder.write("site/members/index.html", "<h1>for members</h1>");
    folder.write("site/members/a b.html", "<h1>with a blank</h1>");
    folder.write("site/members/film.bin", bytes(300_000, 7));
    folder.write("site/membership.html", "<h1>how to become one</h1>");
    folder
}

/// A server with members in a database, whose hashes are cheap.
fn launch(config: &Config, folder: &TempFolder, url: &str) -> Launch {
    launch_costing(config, folder, url, "64k", 1)
}

/// A server whose hashes have this cost.
fn launch_costing(config: &Config, folder: &TempFolder, url: &str, memory: &str, passes: u32) -> Launch {
    Launch::new(config, &folder.at("site"))
        .flag("--accounts", url)
        .flag("--protect", "/members/")
        .flag("--password-memory", memory)
        .flag("--password-passes", passes)
}

/// A server on epoll with a new database.
fn launch_on(folder: &TempFolder, kind: DatabaseProduct) -> Launch {
    launch(&Config::of(Engine::Epoll), folder, &fresh(kind, folder))
}

/// A server on epoll without throttling.
fn start(folder: &TempFolder, kind: DatabaseProduct) -> Server {
    launch_on(folder, kind).flag("--login-throttle", "off").start()
}

/// Runs `case` with a site and each kind of database.
fn on_each_database(case: impl Fn(&TempFolder, DatabaseProduct)) {
    let folder = site();
    DatabaseProduct::ALL.into_iter().for_each(|kind| case(&folder, kind));
}

/// A new member, who is logged in.
#[track_caller]
fn new_member(server: &Server, name: &str) -> Visitor {
    let mut visitor = Visitor::new(server);
    assert_eq!((visitor.register(name, GOOD).status, visitor.log_in(name, GOOD).status), (303, 303));
    visitor
}

#[track_caller]
fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
