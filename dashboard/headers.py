"""Security headers on every answer: a content security policy that Streamlit's front end works with, and friends."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def inline_script_hashes() -> list[str]:
    """CSP sources for the inline scripts of Streamlit's own page, so that no other inline script can run."""
    import streamlit

    page = Path(streamlit.__file__).parent / "static" / "index.html"
    if not page.is_file():
        return []
    scripts = _INLINE_SCRIPT.findall(page.read_text(encoding="utf-8"))
    return [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]


def content_security_policy(frame_ancestors: str) -> str:
    """The policy of all pages.

    Scripts come from this server only; ``blob:`` is how the front end loads components from text that this server
    sent. Styles are inline because the front end's style library writes them at run time. Nothing is fetched from
    another host: fonts, scripts and charts are all served from here.

    Args:
        frame_ancestors: sources that may show the site in a frame, as the directive wants them.
    """
    directives = {
        "default-src": "'self'",
        "script-src": " ".join(["'self'", "blob:", *inline_script_hashes()]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self' ws: wss:",
        "worker-src": "'self' blob:",
        "media-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": frame_ancestors,
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


class SecurityHeaders:
    """ASGI middleware that sets the headers on every HTTP answer, errors included."""

    def __init__(self, app: ASGIApp, frame_ancestors: str) -> None:
        """Work the header values out once."""
        self.app = app
        self.headers = {
            "Content-Security-Policy": content_security_policy(frame_ancestors),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "strict-origin-when-cross-origin",
            "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
            "Cross-Origin-Opener-Policy": "same-origin",
        }
        if frame_ancestors.strip() == "'none'":
            self.headers["X-Frame-Options"] = "DENY"
        elif frame_ancestors.strip() == "'self'":
            self.headers["X-Frame-Options"] = "SAMEORIGIN"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, send_with_headers)
