import type { EventName } from '../events.ts';
import type { EphemeralType } from '../frames.ts';

/** What each event of a conversation means, for AsyncAPI and the reference page. */
export const eventTexts: Record<EventName, string> = {
  'message.new': 'A message was sent',
  'message.updated': 'A message was edited',
  'message.deleted': 'A message was deleted',
  'message.reactions':
    'The reactions to a message changed, or the votes for its poll; within 1 to 10 s there is one event for all changes',
  'message.pinned': 'A message was pinned or unpinned. A deletion unpins without this event',
  'message.enriched': 'A message changed without an edit: its poll was closed',
  'member.added': 'Users joined a group',
  'member.removed': 'A user left a group or was removed',
  'member.updated': 'The role of a member changed',
  'conversation.created': 'A conversation was created, or a deleted direct conversation was created again',
  'conversation.updated': 'Name, metadata or rules changed',
  'conversation.deleted': 'The conversation was deleted',
};

/** What each frame outside of the streams means. */
export const ephemeralTexts: Record<EphemeralType, string> = {
  receipt: 'A member has received or read messages, up to a seq',
  typing: 'A member started or stopped typing',
  presence: 'A watched user went online or offline',
  'user.updated': 'The profile of a user changed',
  'reaction.own':
    'The user’s own reactions to a message, and its vote, after it changed them on one of its devices',
  personal: 'Something that belongs to the user alone changed, such as a notification level or a block',
  hb: 'The service’s heartbeat: answer with `hb`',
  goaway: 'The process of the socket will stop: connect again',
  resync_required: 'Events of a conversation are no longer kept: load it again',
  resync_hint: 'The client may have missed events: sync',
  token_expiring: 'The token expires soon: send `token.refresh` with a new one',
  'call.incoming': 'A user calls',
  'call.updated': 'A call or its participants changed',
  'call.ended': 'A call ended',
  'call.producer': 'A participant turned a source on or off',
  'call.media': 'The media of a call moved to another server: open all transports again',
  'call.speakers': 'The speakers in a call and their loudness',
};
