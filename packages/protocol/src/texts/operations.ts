import type { OperationName } from '../operations/index.ts';

/**
 * Descriptions of operations for OpenAPI and the reference page: what the summary leaves open, for a person who calls
 * the operation for the first time. A test reports operations without one.
 */
export const operationTexts: Partial<Record<OperationName, string>> = {
  // Tokens and users
  'tokens.create':
    'For servers without a JWT library; signing a token locally needs no request. An unknown user is created. Right after tokens were revoked, this endpoint knows the cut-off and makes a token that works.',
  'users.upsert':
    'Fields that are not given stay as they are; `null` empties one. Users need not be created before they are used: naming one as a member or minting a token for it creates it without a name. Those who share a conversation get the frame `user.updated` when something changed.',
  'users.get':
    'A client may read itself and users with whom it shares a conversation; any other id is `403 forbidden`, known or not.',
  'users.lookup':
    'For names and pictures beside messages: up to 200 ids in one request. Users that are unknown or not to be seen are missing in the answer; order does not matter. The client SDK does this by itself (`client.users`).',
  'users.list': 'Users are sorted by id, or by name if `namePrefix` is given.',
  'users.deactivate':
    'For users who may not use the service for now: tokens are refused with `403 user_deactivated`, sockets close with 4003, live calls are left. Messages, memberships and unread counts stay. `reactivate` undoes it; the user then needs a new token.',
  'users.reactivate': 'Tokens from before the deactivation stay refused.',
  'users.revokeTokens':
    'For a lost device or a leaked token: every token with an earlier `iat` is `401 token_invalid` from now on, and every socket of the user closes with 4001.',
  'users.erase':
    'Cannot be undone. The id is replaced by `deleted:…` wherever it is kept. `anonymize` leaves the messages, `delete` removes them for good and takes the user out of its groups. Answers when this service’s own store is clean; a database of yours follows as a job. Emits `user.deleted`.',
  'users.sessions':
    'Where and when a user was connected: node, address, version of the SDK, how the socket ended.',
  'users.endSession': 'The socket closes with 4001 on whichever node it is.',
  'users.devices': 'The tokens of the devices are shown shortened.',
  'users.removeDevice':
    'The app registers the device again when it next starts, unless the user is deactivated.',
  // Conversations
  'conversations.create':
    'Direct: exactly two members; asking again for the same two gives the conversation that exists (200). Group: 1 to 500 members with the owner. A client becomes a member, and the owner of a group; which ones it may create is the setting `clientConversationCreation`. A server may name users who do not exist yet, a client may not. Members get the event `conversation.created`.',
  'conversations.list':
    'A client lists its own conversations; a server names the user. Each item has what a list shows: unread count, last message, mute. Direct conversations include their two members.',
  'conversations.get':
    'The conversation with all its members. A server also sees deleted conversations, with `deletedAt`.',
  'conversations.update':
    'Only what is given changes. Members get `conversation.updated` with just the changed fields.',
  'conversations.delete':
    'Clients do not see it any more (404), sockets get `conversation.deleted`, a live call ends. Nothing is removed: creating a deleted direct conversation again brings it back with its history.',
  'conversations.mute':
    'No pushes for this conversation to this user; messages, unread counts and sockets are not affected.',
  'conversations.unmute': 'Pushes are sent again.',
  'conversations.read':
    'Counts everything up to `seq` as read. The other members get a receipt, at most once a second; webhooks get `message.read`, at most every 10 s. Sending a message moves the own mark as well.',
  // Members
  'members.list':
    'Members are sorted by user id. `lastReadSeq` and `lastDeliveredSeq` are for the ticks beside messages.',
  'members.add':
    'All users are added or none: if one is a member already, it is `409 already_member`. New members see the whole history and start with nothing unread. Direct conversations cannot be changed.',
  'members.remove':
    'A member may remove itself (leave), the owner and the server anybody. The removed user gets `member.removed` and then nothing more of the conversation. When the owner leaves, only the server manages the group.',
  'members.update': 'A group may have several owners, or none.',
  // Messages
  'messages.send':
    'A message needs text, an attachment or metadata. `clientMsgId` makes sending again safe, over REST and the socket alike, for 48 hours: a duplicate gives the original. A server may send as a member (`senderId`), or without one: a system message. Members get the event `message.new`.',
  'messages.list':
    'Newest first; `before` goes back, `after` gives the next ones above it, still in descending order. Deleted messages are tombstones. Where a database of yours holds older messages and is down, pages that need it are `503 history_unavailable`.',
  'messages.versions': 'The text of a message before each edit, as far as it is kept.',
  'messages.get': 'A deleted message is a tombstone; one that was deleted for good is 404.',
  'messages.update':
    '`expectedVersion` is the version that the editor saw: if somebody was faster it is `409 version_conflict`, and nothing is lost. Members get `message.updated`.',
  'messages.delete':
    'Soft: the message becomes a tombstone, without its content, and keeps its place. Hard (servers only): it is gone from history, and its content from everything that is kept. Deleting twice changes nothing.',
  sync: 'What to call after connecting: conversations that changed since the cursor with their unread counts, and those one is no longer a member of. Keep the cursor with what it describes. Repeats are normal. After 30 days the cursor is too old and `fullReload` is true: load the list afresh.',
  'events.list':
    'Every change of a conversation takes the next `seq`, so a gap can be seen and fetched. `410 resync_required`: too many are missing (over 1,000) or they are no longer kept; load the latest page of messages instead.',
  // Uploads
  'uploads.create':
    'Step one of three: announce the file, send it straight to the storage as the ticket says (PUT with its headers, or POST with its form fields and the file as `file`), then complete it. Types that browsers would run are refused: SVG, HTML, scripts, programs. At most 25 MB.',
  'uploads.complete':
    'Looks the file up in the storage, checks that it is what it says, and makes the attachment `ready`; its id then goes into a message. Before the file has arrived it is `422 attachment_not_ready`: try again.',
  'attachments.url':
    'Ask when somebody wants to see the file; the URL works without a credential until it expires.',
  // Push
  'push.register':
    'Call it at every start of the app. A token belongs to the user who registered it last. `webpush`: the token is the JSON of the browser’s PushSubscription.',
  'push.unregister':
    'Call it when the user signs out; otherwise the device keeps showing messages of a user who is no longer signed in.',
  'push.listCredentials': 'Lists the providers that have credentials, never the credentials themselves.',
  'push.setCredentials':
    'The form of the credentials is checked; they are stored encrypted and replace the earlier ones.',
  'push.removeCredentials':
    'Devices stay registered; nothing is sent over this provider until there are credentials again.',
  'push.test': 'Shows in one step whether credentials, token and app match.',
  // Calls
  'calls.start':
    'The call rings on every device of the other members for 45 s, by socket and by push. A user who is in another call is `busy`. A conversation has at most one live call.',
  'calls.list': 'Calls of a conversation or of a user, or only live ones.',
  'calls.get': 'The call with its participants and the state of each.',
  'calls.join':
    'The answer has what the media connection needs; the SDK does the rest. With `answer` it fails when another device of the user was first. The plan bounds how many take part.',
  'calls.decline': 'When every callee has declined, the call ends with `declined`.',
  'calls.leave': 'A call of two ends when the first one leaves, a group call when the last one leaves.',
  'calls.end': 'The call ends with `ended_by_server`; every device gets `call.ended`.',
  'calls.remove': 'The participant may join again unless it is also removed from the conversation.',
  'calls.mute': 'Answers `400 invalid_request` if the user is not connected to media.',
  // Webhooks
  'webhooks.create':
    'The URL is https and public. Keep the secret: deliveries are signed with it, and nothing shows it again. Without `events` nothing is delivered.',
  'webhooks.list': 'Endpoints are shown without their secrets.',
  'webhooks.get': 'The endpoint is shown without its secret.',
  'webhooks.update':
    'Enabling an endpoint that was disabled starts with what happens from then on; `replayFailed` brings what was missed.',
  'webhooks.delete': 'Pending deliveries are not made any more.',
  'webhooks.rotateSecret':
    'Deliveries carry signatures of both secrets for 24 hours, so receivers lose nothing while they change over.',
  'webhooks.test': 'The answer contains what the receiver answered. A test never disables an endpoint.',
  'webhooks.deliveries': 'Each delivery has its attempts: when, with which status, and how long it took.',
  'webhooks.replay':
    'Sends the same bytes under the same `webhook-id`, as long as the payload is kept (72 hours).',
  'webhooks.replayFailed':
    'Use it after an outage of the receiver: each event that failed is delivered again.',
  // Figures
  'analytics.get':
    'The answer contains only counts; no message is read. `hour` covers at most 7 days, `day` at most 366; `to` is exclusive, all times are UTC.',
  'usage.get':
    'The figures that plans limit: users of the month, most connections at once, messages, requests, deliveries, pushes.',
  // Sign-in and accounts
  'session.create':
    'A wrong address and a wrong password get the same answer after the same time. If a second factor is on, a missing `code` is `401 second_factor_required`: ask for the code and send everything again.',
  'session.get': 'The signed-in account with its organizations, for the first page of a dashboard.',
  'session.delete': 'Ends the session and clears the cookie.',
  'session.passkeyOptions': 'The challenge is valid for five minutes.',
  'session.createWithPasskey': 'A passkey counts as both factors.',
  'session.reauth':
    'Changes that need a sign-in of the last 15 minutes answer `403 reauth_required`; call this, then try again.',
  'password.forgot': 'The answer is always the same, so that nobody learns which addresses have accounts.',
  'password.reset': 'The token of the link works once, for an hour.',
  'account.get': 'The account, with the second factors that it has.',
  'account.update': 'The e-mail address cannot be changed.',
  'account.changePassword': 'Needs the present password, and ends all other sessions.',
  'account.beginTotp': 'Show `uri` as a QR code.',
  'account.confirmTotp': 'The recovery codes are shown only once; each works once in place of a code.',
  'account.removeTotp': 'Passkeys are not removed.',
  'account.renewRecoveryCodes': 'The new codes are shown only once; the old ones stop working.',
  'account.listPasskeys': 'Each passkey shows when it was last used.',
  'account.passkeyOptions': 'The challenge is valid for five minutes.',
  'account.addPasskey': 'Give the passkey a name that tells which device it is on.',
  'account.removePasskey': 'The passkey no longer signs in.',
  'account.listSessions':
    'Each session shows address and browser, so that a stranger’s session can be noticed.',
  'account.endOtherSessions': 'Use it if you suspect somebody else; then change the password.',
  'account.endSession': 'The cookie of that browser is no longer valid.',
  'organizations.get': 'The organization, with the caller’s own role in it.',
  'organizations.update': 'Changes the name; the id stays.',
  'organizations.delete':
    'Keys and tokens of its environments are refused and sockets closed at once; their data is removed in the background. It cannot be undone.',
  'organizations.listMembers': 'People with their roles, and whether they use a second factor.',
  'organizations.updateMember':
    'Roles: owner (everything), admin (everything except changing owners), developer (environments, keys, webhooks, storage, and reading messages), viewer (reads everything except messages and secrets).',
  'organizations.removeMember': 'The account’s sessions stay, but no longer reach this organization.',
  'organizations.leave': 'If you are the last owner, make somebody else an owner first.',
  'invitations.list': 'Invitations that were neither accepted nor withdrawn.',
  'invitations.create':
    'The link is sent by e-mail; if no mail server is set, it is in the answer, to be passed on by hand.',
  'invitations.delete': 'The link no longer works.',
  'invitations.preview': 'Needs no sign-in, only the token of the link.',
  'invitations.accept': 'The role is the one that the invitation names.',
  'accounts.reset': 'For the operator, if no mail server can send a link.',
  'accounts.endSessions': 'For the operator: ends all sessions of one account.',
  'accounts.removeSecondFactor': 'For the operator, if a person lost every second factor.',
  'accounts.signUp': 'Sends a link that creates an account with an organization of its own.',
  // Environments
  'environments.list': 'The environments of the caller’s organizations.',
  'environments.create':
    'Environments are separate: each has its own users, keys and limits. Development environments may accept unsigned tokens; production environments never do.',
  'environments.get': 'The environment, with its settings and its plan.',
  'environments.update':
    'A suspended environment refuses every request and closes its sockets with 4003; nothing is lost.',
  'keys.list': '`lastUsedAt` shows which keys are in use.',
  'keys.create':
    'Several keys may be live at once: create the new one, change your servers over, then revoke the old one.',
  'keys.revoke': 'Takes effect from the next request on; sockets whose tokens the key signed close.',
  // Storage
  'storage.get': 'Passwords in URLs are masked.',
  'storage.update':
    '`byo_db` needs an active slot whose last test passed. History is copied in the background, oldest conversations first; the service keeps working meanwhile.',
  'storage.setDatabase':
    'Two slots let credentials change without a gap: set the other one, test it, promote it.',
  'storage.rotateSecret': 'Only for slots of type `http`.',
  'storage.testDatabase': 'Says in words what is missing and what to do about it.',
  'storage.migrateDatabase':
    'If a database user cannot be created for you, `runtimeUrl` is null and `notes` say what to run by hand.',
  'storage.promote': 'Reads and writes then go to this slot.',
  'storage.setMedia':
    'The storage is tried first: a file is uploaded, read and deleted, and with `origin` the CORS rules are checked. Files that are there already stay where they are.',
  'storage.testMedia': 'With `origin`, the address of your web app, the CORS rules are checked as well.',
  'storage.removeMedia':
    'New files go to the service’s own storage again; those in yours stay there and stay readable as long as its credentials work.',
  'storage.listSlots': 'For the operator.',
  'storage.setAside': 'For the operator. Messages wait with this service meanwhile.',
  'storage.takeBack': 'For the operator: the slot is tried again at once.',
  'storage.resync': 'Use it after the database was restored from a backup.',
  // Looking into it
  'audit.list':
    'Changes to settings, keys, people and webhooks, and readings of message content. It contains no secrets.',
  'logs.list': 'Entries contain no bodies. `requestId` finds the request that an error names.',
  'overview.get': 'The figures for a start page.',
  'live.nodes': 'One row per process.',
  'live.sockets': 'Open sockets, with their address and SDK version.',
  'live.trace':
    'Shows which frames a client sends and receives, without their content. It ends after the requested time.',
  'diagnostics.delivery':
    'What happened, in order: whether the user was a member and connected, which pushes were sent or why not, and receipts.',
};
