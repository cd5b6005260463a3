"""A conversation by the client that openapi-python-client generates. Arguments: the service and a secret key."""

import json
import sys

from parley import AuthenticatedClient
from parley.api.conversations import conversations_create
from parley.api.messages import messages_delete, messages_list, messages_send, messages_update
from parley.api.sync_and_events import events_list
from parley.api.tokens import tokens_create
from parley.api.users import users_upsert
from parley.models import (
    Conversation,
    ConversationsCreateBody,
    ConversationsCreateBodyType,
    Error,
    Message,
    MessagesSendBody,
    MessagesUpdateBody,
    Tombstone,
    TokensCreateBody,
    UsersUpsertBody,
)

url, secret_key = sys.argv[1:]
server = AuthenticatedClient(base_url=url, token=secret_key)


def user(id: str) -> AuthenticatedClient:
    users_upsert.sync(id, client=server, body=UsersUpsertBody(name=id.capitalize(), image_url=None))
    token = tokens_create.sync(client=server, body=TokensCreateBody(user_id=id))
    assert token is not None and not isinstance(token, Error)
    return AuthenticatedClient(base_url=url, token=token.token)


alice, bob = user("py-alice"), user("py-bob")
body = ConversationsCreateBody(type_=ConversationsCreateBodyType.GROUP, members=["py-bob"], name="Team")
conversation = conversations_create.sync(client=alice, body=body, idempotency_key="python:1")
assert isinstance(conversation, Conversation)
again = conversations_create.sync(client=alice, body=body, idempotency_key="python:1")
assert isinstance(again, Conversation) and again.id == conversation.id

one = messages_send.sync(conversation.id, client=alice, body=MessagesSendBody(client_msg_id="1", text="one"))
assert isinstance(one, Message) and one.reply_to is None
two = messages_send.sync(
    conversation.id, client=bob, body=MessagesSendBody(client_msg_id="2", text="two", reply_to=one.id)
)
assert isinstance(two, Message) and two.reply_to == one.id
refused = messages_update.sync(one.id, client=bob, body=MessagesUpdateBody(expected_version=1, text="mine"))
assert isinstance(refused, Error)
edited = messages_update.sync(one.id, client=alice, body=MessagesUpdateBody(expected_version=1, text="edited"))
assert isinstance(edited, Message) and edited.edited_at is not None
deleted = messages_delete.sync(two.id, client=bob)
assert isinstance(deleted, Tombstone) and deleted.text is None

messages = messages_list.sync(conversation.id, client=alice)
events = events_list.sync(conversation.id, client=bob)
assert messages is not None and not isinstance(messages, Error)
assert events is not None and not isinstance(events, Error)
print(
    json.dumps(
        {
            "refused": refused.error.code,
            "version": edited.version,
            "messages": [[type(m).__name__, m.text] for m in messages.data],
            "events": [[type(e).__name__, e.type_] for e in events.data],
        }
    )
)
