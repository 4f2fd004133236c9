//! Members: a visitor's whole journey on every engine, and the numbered cases of HARDENING on every database.

mod boundary;
mod browser;
mod hostile;
mod journey;
mod nodes;
mod outage;
mod routes;
mod sessions;
mod trouble;
mod unix_proxy;

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{DatabaseProduct, fresh};
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{TempFolder, bytes};

use boundary::*;
use browser::*;
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
        Topologies Own: a_visitor_becomes_a_member_and_leaves;
        Engines Own: a_browser_goes_all_the_way, h70_what_is_protected_is_checked_whatever_is_asked,
            h82_members_pages_stay_private_after_an_interim_response,
            h83_no_route_leads_to_a_protected_file_without_a_login,
            h81_an_invented_cookie_is_rejected_in_the_worker;
        Concurrent Own: h81_invented_cookies_leave_members_their_answers;
        Every Once: h61_sql_in_every_field_is_text, h62_an_unknown_name_and_a_wrong_password_are_answered_alike,
            h63_guessing_is_throttled_and_the_owner_is_not_locked_out, h64_a_flood_of_logins_hurts_no_file,
            h65_a_session_changes_at_login_and_password_and_dies_at_logout, h66_cookies_are_as_safe_as_the_way,
            h67_forms_of_other_sites_are_not_taken, h68_one_name_is_registered_once,
            h63_h66_visitors_behind_a_unix_socket_are_told_apart,
            h80_a_login_in_flight_does_not_survive_a_change_of_the_member,
            a_session_that_is_used_does_not_end_early, a_fresh_login_works_at_once,
            a_member_has_32_sessions_at_most, a_session_outlives_an_update_of_the_database,
            h69_a_database_that_goes_and_comes_back,
            h69_a_database_that_is_locked, a_database_is_reached_by_its_socket, invitations_let_one_in, users_are_looked_after,
            templates_are_the_users_own, a_database_that_can_not_be_used_is_one_line,
            h83_a_folder_that_takes_the_place_of_a_protected_one_is_protected,
            the_book_on_nodes, two_nodes_share_a_login, the_accounts_are_replaced_when_they_die;
        Engines OwnAsRoot: h78_the_user_of_the_workers_reads_neither_the_database_nor_memory;
        Every OnceAsRoot: h83_folders_that_workers_may_not_look_at_stay_protected,
            h69_a_disk_that_is_full_loses_nobody, h69_a_database_that_is_full,
            h71_what_is_acknowledged_was_synced,
            h75_what_is_planted_at_the_database_is_never_opened_by_root,
            h75_root_follows_no_link_on_the_way_to_the_database,
            h75_what_is_planted_beside_the_database_stays_roots,
            h75_a_database_changes_hands_only_from_the_user_of_the_workers,
            a_folder_that_the_accounts_cannot_write_is_named_and_nothing_is_left_there,
            the_user_of_the_accounts_is_checked_and_a_shared_one_is_a_warning,
            h78_workers_share_one_page_with_the_accounts,
            h76_messages_that_are_no_questions_and_answers_that_nobody_reads_harm_nobody,
            h77_an_accounts_process_that_hangs_is_replaced,
            h78_without_root_the_memory_of_every_process_is_closed_to_the_same_user,
            h78_a_url_in_a_file_is_unknown_to_workers;
        Every Many: h71_what_was_acknowledged_is_there_after_a_kill;
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

/// A server on epoll without throttling.
fn start(folder: &TempFolder, kind: DatabaseProduct) -> Server {
    let config = Config::of(tenfold_engine::Engine::Epoll);
    launch(&config, folder, &fresh(kind, folder)).flag("--login-throttle", "off").start()
}

#[track_caller]
fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
