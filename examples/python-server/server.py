"""Gives the users of an app their chat tokens, and receives webhooks. Python's standard library alone.

PARLEY_SECRET_KEY=sk_live_… WEBHOOK_SECRET=whsec_… PORT=3002 python3 server.py
"""
import base64, hashlib, hmac, json, os, re, secrets, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET_KEY = os.environ["PARLEY_SECRET_KEY"]
WEBHOOK_KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
LARGEST = 1024 * 1024
# In place of your own accounts and sessions.
PASSWORDS = {"alice": "wonderland", "bob": "builder"}
sessions = {}


def user_token(user_id, seconds=3600):
    """A JWT: HS256 with the whole secret key, whose middle part is the key id."""

    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    now = int(time.time())
    header = {"alg": "HS256", "typ": "JWT", "kid": SECRET_KEY.split("_")[2]}
    claims = {"sub": user_id, "iat": now, "exp": now + seconds}
    signed = part(json.dumps(header).encode()) + b"." + part(json.dumps(claims).encode())
    return (signed + b"." + part(hmac.digest(SECRET_KEY.encode(), signed, hashlib.sha256))).decode()


def verified(headers, body):
    """Standard Webhooks: HMAC-SHA256 over id.timestamp.body; during a rotation there are two signatures."""
    ident, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not re.fullmatch(r"\d{1,12}", stamp) or abs(time.time() - int(stamp)) > 300:
        return False
    digest = hmac.digest(WEBHOOK_KEY, f"{ident}.{stamp}.".encode() + body, hashlib.sha256)
    wanted = "v1," + base64.b64encode(digest).decode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(one.encode(), wanted.encode()) for one in given)


def work(event):
    if event["type"] == "message.created":
        message = event["data"]["message"]
        print("message.created", message["senderId"] + ":", message["text"], flush=True)


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, text="", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        session = re.search(r"(?:^|; )session=(\w+)", self.headers.get("cookie", ""))
        user = sessions.get(session and session[1])
        if self.path != "/chat-token" or user is None:
            return self.answer(401 if self.path == "/chat-token" else 404)
        self.answer(200, user_token(user), content_type="text/plain")

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > LARGEST:
            return self.answer(413)
        body = self.rfile.read(length)
        if self.path == "/webhooks":
            if not verified(self.headers, body):
                return self.answer(400)
            self.answer(204)
            # Every attempt of an event has the same id: look for it in your database before you work on it.
            work(json.loads(body))
        elif self.path == "/sign-in":
            given = json.loads(body)
            if PASSWORDS.get(given["user"]) != given["password"]:
                return self.answer(401)
            session = secrets.token_hex(16)
            sessions[session] = given["user"]
            self.answer(204, set_cookie=f"session={session}; Path=/; HttpOnly; SameSite=Lax")
        else:
            self.answer(404)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3002"))), Handler)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
