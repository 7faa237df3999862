"""`crosswind token`: who may ask a server, for what, and until when."""

import argparse
import time
from urllib.parse import urlencode

from crosswind.cli.arguments import configure_server
from crosswind.cli.text.output import notice, say, say_json, table
from crosswind.cli.verbs.serve import PORT
from crosswind.client.connection import server_address
from crosswind.client.tokens import TokenService, token_service
from crosswind.dashboards.wording import NONE, utc
from crosswind.data.schema.access import Principal, PrincipalKind, Role, Scope, TokenUse, owner
from crosswind.data.schema.answers.tokens import Token
from crosswind.data.schema.errors import InvalidInputError
from crosswind.settings import Settings

USAGE = "create NAME | list | revoke ID | link [NAME]"
HEADINGS = ("token", "for", "role", "scopes", "use", "expires", "last used", "state")
DAY_SECONDS, LINK_SECONDS = 86_400, 600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("words", nargs="+", metavar="WORD", help=USAGE)
    parser.add_argument(
        "--scope", action="append", choices=[*Scope], help="what it may do; repeat it for more (default: read)"
    )
    parser.add_argument(
        "--kind", choices=[*PrincipalKind], help="what NAME names (default: service; of a link: person)"
    )
    parser.add_argument("--role", choices=[*Role], default=Role.USER, help="support and admin see all rows")
    parser.add_argument("--user", metavar="NAME", help="whose rows it may see (of a person: their own)")
    parser.add_argument(
        "--account", action="append", default=[], metavar="NAME", help="an account whose rows it may see"
    )
    parser.add_argument("--system", metavar="NAME", help="where the job or agent is")
    parser.add_argument(
        "--days", type=float, default=90.0, help="until it expires (default: 90; a link holds 10 minutes)"
    )
    parser.add_argument("--url", help=f"where browsers reach the server, for a link (default: http://localhost:{PORT})")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Create, list or revoke tokens."""
    with token_service(arguments.server, settings) as tokens:
        match arguments.words:
            case ["create", name]:
                _create(tokens, _principal(arguments, name, PrincipalKind.SERVICE), arguments)
            case ["list"]:
                _list(tokens.all(), as_json=arguments.json)
            case ["revoke", token_id]:
                _print_revoked(tokens.revoke(token_id), as_json=arguments.json)
            case ["link", *names] if len(names) <= 1:
                _link(tokens, _principal(arguments, names[0], PrincipalKind.PERSON) if names else owner(), arguments)
            case words:
                raise InvalidInputError(f"token {' '.join(words)[:80]}: expected {USAGE}")
    return 0


def _principal(arguments: argparse.Namespace, name: str, kind: PrincipalKind) -> Principal:
    kind = PrincipalKind(arguments.kind or kind)
    return Principal(
        kind=kind,
        name=name,
        role=Role(arguments.role),
        scopes=frozenset(map(Scope, arguments.scope or [Scope.READ])),
        user=arguments.user or (name if kind is PrincipalKind.PERSON else None),
        accounts=frozenset(arguments.account),
        system=arguments.system,
    )


def _create(tokens: TokenService, principal: Principal, arguments: argparse.Namespace) -> None:
    issued = tokens.create(principal, arguments.days * DAY_SECONDS)
    if arguments.json:
        say_json(issued)
        return
    notice(f"token {issued.token.token_id} of {principal} holds until {utc(issued.token.expires_ns)}; its secret:")
    say(issued.secret)


def _link(tokens: TokenService, principal: Principal, arguments: argparse.Namespace) -> None:
    issued = tokens.create(principal, LINK_SECONDS, TokenUse.LINK)
    base = (arguments.url or server_address(arguments.server) or f"http://localhost:{PORT}").rstrip("/")
    link = f"{base}/login?{urlencode({'link': issued.secret})}"
    if arguments.json:
        say_json({"url": link, "token": issued.token})
        return
    notice(f"this link logs {principal} in once, until {utc(issued.token.expires_ns)}:")
    say(link)


def _list(tokens: list[Token], *, as_json: bool) -> None:
    if as_json:
        say_json(tokens)
    elif tokens:
        say(table(HEADINGS, [_line(token) for token in tokens]))
    else:
        say("There are no tokens: crosswind token create NAME makes one.")


def _line(token: Token) -> tuple[str, ...]:
    scopes = " ".join(sorted(token.principal.scopes))
    times = utc(token.expires_ns), NONE if token.used_ns is None else utc(token.used_ns)
    state = (token.refusal(time.time_ns()) or "holds").removeprefix("the token ")
    return (token.token_id, str(token.principal), token.principal.role, scopes, token.use, *times, state)


def _print_revoked(token: Token, *, as_json: bool) -> None:
    if as_json:
        say_json(token)
    else:
        say(f"token {token.token_id} of {token.principal} and what was made with it are revoked")
