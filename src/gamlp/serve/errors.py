"""Whatever goes wrong becomes one JSON object with a status: what was found, and what to do; never a traceback.

    {"error": "IdError", "message": "There is no node 'x' …", "remedy": "Did you mean …?", "code": 404}

Messages are those of the readers and the command line; the tests send all kinds of wrong requests.
"""

from __future__ import annotations

from starlette.responses import JSONResponse

from gamlp.errors import GamlpError, InputError, printable
from gamlp.serve.body import short
from gamlp.serve.limits import Overloaded, TooMuch

LONGEST = 1_000  # letters of a message: it may quote what a client sent
STATUS: dict[type[GamlpError], int] = {TooMuch: 413, Overloaded: 503, InputError: 422}
OURS = "The server failed to answer.\nThis is a fault of ours, or of its disk: its log says more."
REMEDIES = {
    401: "Send the token that the server was started with: Authorization: Bearer TOKEN.",
    404: "GET /api lists what can be asked for.",
    405: "GET /api lists what can be asked for, and how.",
    415: "Send JSON with Content-Type: application/json.",
    421: "Use the address that the server was started with.",
}


def answer(status: int, error: str, text: str) -> JSONResponse:
    """Return one error as a response; the text has the remedy on its second line."""
    found, _, remedy = printable(text).partition("\n")
    content = {"error": error, "message": short(found, LONGEST), "remedy": short(remedy, LONGEST), "code": status}
    retry = {"Retry-After": "1"} if status == 503 else {}
    login = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse(content, status, headers=retry | login)


def refusal(status: int, error: str, found: str) -> JSONResponse:
    """Return what is refused before it is looked at."""
    return answer(status, error, f"{found}\n{REMEDIES.get(status, REMEDIES[404])}")


def of_error(error: Exception, seconds: int) -> JSONResponse:
    """Return the answer to what went wrong; what nobody foresaw, and what a disk says, stays in the log."""
    if isinstance(error, TimeoutError):
        text = f"The request was not read and answered within {seconds} seconds.\nSend it again, or a smaller one."
        return answer(503, "TooSlow", text)
    status = next((number for kind, number in STATUS.items() if isinstance(error, kind)), 500)
    if status == 500:
        return answer(500, "ServerError", OURS)
    return answer(status, type(error).__name__, str(error))
