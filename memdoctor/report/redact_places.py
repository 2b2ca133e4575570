"""Private names in addresses of storage and in other systems' paths: URLs, buckets, Windows paths, ``~user``; and serials of devices."""

from __future__ import annotations

import re

from memdoctor.report.redact_paths import hide_path
from memdoctor.report.redact_secrets import Name

_STORAGE = re.compile(
    r"\b(?P<scheme>s3a?|gs|gcs|hdfs|viewfs|file|abfss?|wasbs?|az|adl|oss|cosn?|obs|tos|swift|r2|nfs|smb|sftp|ftp|ssh|rsync|lakefs|dbfs)://(?P<rest>[^\s\"'<>`|]+)"
)
_WINDOWS = re.compile(r"(?<![\w\\])(?P<drive>[A-Za-z]:)\\(?P<rest>(?:[^\\\"'<>|:*?\n]{1,120}\\)+[^\s\\\"'<>|:*?,;()]*)")
_TILDE = re.compile(r"(?<![\w/~.])~(?P<user>[A-Za-z_][\w.-]*)(?P<rest>(?:/[^\s\"'`:,;<>()\[\]{}|*?]+)?)(?=[/\s\"':,;)]|$)")
_DEVICE = re.compile(r"\b(?P<kind>GPU|MIG)-(?P<uuid>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\b")
_SERIAL = re.compile(
    r"(?i)(?P<head>\b(?:board |device )?(?:serial(?: ?(?:number|no\.?))?|board part number)\b\s*[:=]\s*)(?P<value>[A-Z0-9][A-Z0-9-]{5,})"
)
_MACHINE = re.compile(r"(?<![\w./-])(?P<host>[a-z][a-z0-9]*(?:-[a-z0-9]+)+-\d{2,4}-\d{2,4})(?![\w-])")  # cw-dfw-h100-001-231-026


def machines_in(text: str) -> list[str]:
    """Words that are built like names of machines: letters, and at least two numbers with leading zeros or of two digits at the end."""
    return [match["host"] for match in _MACHINE.finditer(text)]


def hide_places(text: str, name: Name) -> str:
    """``text`` with buckets, hosts, users and private folders of URLs and foreign paths replaced."""

    def storage(match: re.Match[str]) -> str:
        authority, slash, path = match["rest"].partition("/")
        access, at, place = authority.rpartition("@")
        shown = (name("secret", access) + at if access else "") + (name("bucket", place) if place else "")
        return f"{match['scheme']}://{shown}{hide_path(slash + path, name) if slash else ''}"

    def windows(match: re.Match[str]) -> str:
        return match["drive"] + hide_path("/" + match["rest"].replace("\\", "/"), name).replace("/", "\\")

    def tilde(match: re.Match[str]) -> str:
        return "~" + name("user", match["user"]) + (hide_path(match["rest"], name) if match["rest"] else "")

    text = _STORAGE.sub(storage, text)
    text = _WINDOWS.sub(windows, text)
    text = _TILDE.sub(tilde, text)
    text = _DEVICE.sub(lambda match: f"{match['kind']}-" + name("uuid", match["uuid"]), text)
    return _SERIAL.sub(lambda match: match["head"] + name("serial", match["value"]), text)
