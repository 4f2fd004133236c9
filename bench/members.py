"""A measured server with members, and a browser that submits its forms.

Used by login_time.py and login_flood.py. All processes of the server are pinned to one core.
"""
import http.client, pathlib, re, urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
# A password that the server accepts.
GOOD = "violet tractor 81"


def arguments(parser):
    """Adds the common options."""
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"), help="the release binary")
    parser.add_argument("--accounts", default="sqlite:@RUN@/members.db", metavar="URL",
                        help="an empty database [default: a new SQLite]")
    parser.add_argument("--server-cpu", default="0", help="its core, or cores as taskset takes them")
    parser.add_argument("--client-cpu", type=int, default=1)
    parser.add_argument("--port", type=int, default=9800)


def start(fleet, args):
    """Starts the server in a fleet, and returns its port."""
    command = [args.tenfold, "serve", "@WWW@", "--listen", "127.0.0.1:@PORT@", "--engine", "epoll", "--workers", "1",
               "--access-log", "off", "--control", "off", "--accounts", args.accounts, "--protect", "/members/",
               "--login-throttle", "off"]
    fleet.run.chmod(0o777)  # the user of the server writes the database
    return fleet.start("tenfold", command)


class Browser:
    """A persistent connection with the cookie and the token of a form."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        response, page = self.ask("GET", "/account/login")
        self.cookie = response.getheader("Set-Cookie").split(";")[0]
        self.token = re.search(r'name="token" value="([^"]+)"', page.decode()).group(1)

    def ask(self, method, path, body=None, fields=None):
        self.connection.request(method, path, body, fields or {})
        response = self.connection.getresponse()
        return response, response.read()

    def form(self, **fields):
        """The body and the header fields of a form."""
        return urllib.parse.urlencode({"token": self.token, **fields}), self.fields()

    def fields(self):
        return {"Cookie": self.cookie, "Content-Type": "application/x-www-form-urlencoded"}

    def register(self, name):
        body, fields = self.form(name=name, password=GOOD, again=GOOD)
        response, page = self.ask("POST", "/account/register", body, fields)
        if response.status != 303:
            raise SystemExit(f"{name} cannot register: {response.status}\n{page.decode()[:2000]}")
