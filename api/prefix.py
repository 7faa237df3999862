"""The prefix under which a proxy shows the server."""

from starlette.types import ASGIApp, Receive, Scope, Send


class Prefix:
    """Sets the path below which a proxy shows the application, whether or not the proxy cuts that path off."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self.app = app
        self.root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its root path set."""
        if scope["type"] == "http" and self.root_path:
            path = self.root_path + inner_path(scope["path"], self.root_path)
            scope = {**scope, "root_path": self.root_path, "path": path}
        await self.app(scope, receive, send)


def inner_path(path: str, root_path: str) -> str:
    """Return the path without the proxy's prefix."""
    return path[len(root_path) :] if root_path and path.startswith(f"{root_path}/") else path
