"""The host that turns plugins into tools. Its public names come lazily, so that importing it costs nothing."""

from importlib import import_module

from cyrene_host.version import __version__

TYPE_CHECKING = False  # type checkers take the name for True; to import `typing` for it would cost 5 ms
if TYPE_CHECKING:
    from cyrene_host.call.context import CallContext
    from cyrene_host.call.policy import ApprovalRequest, Approver
    from cyrene_host.catalog.plugins_file import PluginsFileError
    from cyrene_host.catalog.schemas import SchemaInvalidError
    from cyrene_host.catalog.settings import SettingsError
    from cyrene_host.catalog.state import PluginState
    from cyrene_host.catalog.switches import SwitchError
    from cyrene_host.errors import CallFailedError, HostStateError
    from cyrene_host.host.changes import Changes
    from cyrene_host.host.host import Host
    from cyrene_host.host.views import PluginReport, ToolReport
    from cyrene_host.host.why import Reason, Why
    from cyrene_host.supervise.supervisor import StartAbortedError

__all__ = [
    "ApprovalRequest",
    "Approver",
    "CallContext",
    "CallFailedError",
    "Changes",
    "Host",
    "HostStateError",
    "PluginReport",
    "PluginState",
    "PluginsFileError",
    "Reason",
    "SchemaInvalidError",
    "SettingsError",
    "StartAbortedError",
    "SwitchError",
    "ToolReport",
    "Why",
    "__version__",
]

_PLACES = {
    "ApprovalRequest": "call.policy",
    "Approver": "call.policy",
    "CallContext": "call.context",
    "CallFailedError": "errors",
    "Changes": "host.changes",
    "Host": "host.host",
    "HostStateError": "errors",
    "PluginReport": "host.views",
    "PluginState": "catalog.state",
    "PluginsFileError": "catalog.plugins_file",
    "Reason": "host.why",
    "SchemaInvalidError": "catalog.schemas",
    "SettingsError": "catalog.settings",
    "StartAbortedError": "supervise.supervisor",
    "SwitchError": "catalog.switches",
    "ToolReport": "host.views",
    "Why": "host.why",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'cyrene_host' has no attribute '{name}'")
    return getattr(import_module(f"cyrene_host.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
