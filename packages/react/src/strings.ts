import type { ReportReason } from '@parley/client';

/** Every text of the kit. Names and counts are arguments, so that a translation may put them where its grammar wants them. */
export interface Strings {
  chats: string;
  conversationWith(name: string): string;
  search: string;
  noConversations: string;
  noMatch: string;
  loadMore: string;
  unnamedGroup: string;
  someone: string;
  you: string;
  back: string;
  online: string;
  offline: string;
  lastSeen(time: string): string;
  memberCount(n: number): string;
  unread(n: number): string;
  muted: string;
  mentioned: string;
  people: string;
  draft(text: string): string;
  fromYou(text: string): string;
  from(name: string, text: string): string;
  photo: string;
  files(n: number): string;
  messages: string;
  noMessages: string;
  today: string;
  yesterday: string;
  newMessages(n: number): string;
  jumpToLatest: string;
  edited: string;
  deleted: string;
  /** In place of a message from a user whom this user blocks. */
  blocked: string;
  show: string;
  goToMessage: string;
  earlierMessage: string;
  reply: string;
  /** In the name of a reply; null: the original message is not loaded. */
  inReplyTo(name: string | null): string;
  edit: string;
  delete: string;
  deleteAsk: string;
  keep: string;
  notDeleted: string;
  report: string;
  reportTitle: string;
  reportWhy: string;
  reportReasons: Readonly<Record<ReportReason, string>>;
  reportNote: string;
  /** The readers of a report. */
  reportHint: string;
  reported: string;
  notReported: string;
  reportedTooOften: string;
  actions: string;
  waiting: string;
  sent: string;
  delivered: string;
  read: string;
  readBy(n: number): string;
  reactions: string;
  reaction(emoji: string, n: number): string;
  reactWith(emoji: string): string;
  /** Opens all emoji. */
  addReaction: string;
  copy: string;
  pin: string;
  unpin: string;
  pinnedBy(name: string): string;
  pins: string;
  noPins: string;
  notPinned: string;
  loading: string;
  /** Of older messages, or more conversations. */
  notLoaded: string;
  /** The first page of conversations or messages could not be loaded. */
  firstNotLoaded: string;
  /** The database that holds older messages cannot be reached. */
  historyUnavailable: string;
  voiceNote: string;
  play: string;
  pause: string;
  position: string;
  votes(n: number): string;
  pollOption(text: string, n: number): string;
  anonymous: string;
  pollClosed: string;
  pollOpenUntil: string;
  takeVoteBack: string;
  closePoll: string;
  notVoted: string;
  newPoll: string;
  pollQuestion: string;
  pollOptionAt(n: number): string;
  pollMultiple: string;
  pollAnonymous: string;
  askPoll: string;
  failed: string;
  retry: string;
  discard: string;
  openPicture(name: string): string;
  pictureOf(at: number, all: number): string;
  previousPicture: string;
  nextPicture: string;
  close: string;
  download: string;
  fileGone: string;
  write(name: string): string;
  send: string;
  save: string;
  attach: string;
  emoji: string;
  emojiGroups: readonly string[];
  emojiSearch: string;
  emojiRecent: string;
  emojiFound(n: number): string;
  skinTone: string;
  /** From the usual yellow over the lightest to the darkest. */
  skinTones: readonly string[];
  /** Words that find an emoji, besides the English ones: `{ '👍': 'daumen gut' }`. */
  emojiWords: Readonly<Record<string, string>>;
  replyingTo(name: string): string;
  editing: string;
  cancel: string;
  remove(name: string): string;
  percent(n: number): string;
  uploadFailed: string;
  tooManyFiles(max: number): string;
  /** A file that `accept` of the composer does not name. */
  notAccepted: string;
  charactersLeft(n: number): string;
  editConflict: string;
  removed: string;
  /** In a group where members can only read. */
  onlyModerators: string;
  /** Above `max` names the text has no names. */
  typing(names: readonly string[], max?: number): string;
  /** In the row of a direct conversation, which has the name already. */
  typingHere: string;
  connecting: string;
  reconnecting: string;
  waitingHere(n: number): string;
  backOnline: string;
  refused: string;
  tryNow: string;
}

const plural = (n: number, one: string, other: string): string => `${n} ${n === 1 ? one : other}`;

export const english: Strings = {
  chats: 'Chats',
  conversationWith: (name) => `Conversation with ${name}`,
  search: 'Search conversations',
  noConversations: 'No conversations yet',
  noMatch: 'Nothing found',
  loadMore: 'Show more',
  unnamedGroup: 'Group',
  someone: 'Someone',
  you: 'You',
  back: 'Back to the list',
  online: 'Online',
  offline: 'Offline',
  lastSeen: (time) => `Last seen ${time}`,
  memberCount: (n) => plural(n, 'member', 'members'),
  unread: (n) => `${n} unread`,
  muted: 'Muted',
  mentioned: 'Mentions you',
  people: 'People to mention',
  draft: (text) => `Draft: ${text}`,
  fromYou: (text) => `You: ${text}`,
  from: (name, text) => `${name}: ${text}`,
  photo: 'Picture',
  files: (n) => plural(n, 'file', 'files'),
  messages: 'Messages',
  noMessages: 'No messages yet. Say hello.',
  today: 'Today',
  yesterday: 'Yesterday',
  newMessages: (n) => plural(n, 'new message', 'new messages'),
  jumpToLatest: 'Go to the newest message',
  edited: 'edited',
  deleted: 'This message was deleted',
  blocked: 'A message from a user you blocked.',
  show: 'Show',
  goToMessage: 'Go to this message',
  earlierMessage: 'An earlier message',
  reply: 'Reply',
  inReplyTo: (name) => `in reply to ${name ?? 'an earlier message'}`,
  edit: 'Edit',
  delete: 'Delete',
  deleteAsk: 'Delete for everyone?',
  keep: 'Keep',
  notDeleted: 'The message could not be deleted.',
  report: 'Report',
  reportTitle: 'Report this to the team',
  reportWhy: 'What is wrong with it?',
  reportReasons: {
    spam: 'Spam',
    abuse: 'Insults or harassment',
    violence: 'Violence or threats',
    sexual: 'Sexual content',
    self_harm: 'Self-harm or suicide',
    illegal: 'Something illegal',
    other: 'Something else',
  },
  reportNote: 'Details (optional)',
  reportHint: 'The team sees the reported text. Nobody in this chat sees your report.',
  reported: 'Reported. Thank you.',
  notReported: 'The report did not arrive. Try again.',
  reportedTooOften: 'Too many reports in a short time. Try again in a minute.',
  actions: 'Message actions',
  waiting: 'Waiting',
  sent: 'Sent',
  delivered: 'Delivered',
  read: 'Read',
  readBy: (n) => `Read by ${n}`,
  reactions: 'Reactions',
  reaction: (emoji, n) => `${emoji}, ${n}`,
  reactWith: (emoji) => `React with ${emoji}`,
  addReaction: 'Add a reaction',
  copy: 'Copy the text',
  pin: 'Pin',
  unpin: 'Unpin',
  pinnedBy: (name) => `Pinned by ${name}`,
  pins: 'Pinned messages',
  noPins: 'Nothing is pinned yet.',
  notPinned: 'The pin could not be changed.',
  loading: 'Loading…',
  notLoaded: 'More could not be loaded.',
  firstNotLoaded: 'This could not be loaded.',
  historyUnavailable: 'Older messages are not available right now.',
  voiceNote: 'Voice note',
  play: 'Play',
  pause: 'Pause',
  position: 'Position',
  votes: (n) => plural(n, 'vote', 'votes'),
  pollOption: (text, n) => `${text}, ${plural(n, 'vote', 'votes')}`,
  anonymous: 'Anonymous',
  pollClosed: 'Closed',
  pollOpenUntil: 'Open until',
  takeVoteBack: 'Take my vote back',
  closePoll: 'Close the poll',
  notVoted: 'The poll could not be changed.',
  newPoll: 'New poll',
  pollQuestion: 'Question',
  pollOptionAt: (n) => `Option ${n}`,
  pollMultiple: 'More than one choice',
  pollAnonymous: 'Anonymous: nobody sees the votes of others',
  askPoll: 'Ask',
  failed: 'Not sent',
  retry: 'Send again',
  discard: 'Discard',
  openPicture: (name) => `Open ${name}`,
  pictureOf: (at, all) => `${at} of ${all}`,
  previousPicture: 'Previous picture',
  nextPicture: 'Next picture',
  close: 'Close',
  download: 'Download',
  fileGone: 'This file is not available',
  write: (name) => `Write to ${name}`,
  send: 'Send',
  save: 'Save the change',
  attach: 'Attach files',
  emoji: 'Emoji',
  emojiGroups: ['Faces', 'Hands and hearts', 'Things'],
  emojiSearch: 'Search emoji',
  emojiRecent: 'Recent',
  emojiFound: (n) => `${n} found`,
  skinTone: 'Skin tone',
  skinTones: ['Yellow', 'Light', 'Medium light', 'Medium', 'Medium dark', 'Dark'],
  emojiWords: {},
  replyingTo: (name) => `Reply to ${name}`,
  editing: 'Edit message',
  cancel: 'Cancel',
  remove: (name) => `Remove ${name}`,
  percent: (n) => `${n} %`,
  uploadFailed: 'Not uploaded',
  tooManyFiles: (max) => `A message takes up to ${max} files.`,
  notAccepted: 'Files of this kind cannot be sent here.',
  charactersLeft: (n) => `${n} characters left`,
  editConflict: 'This message was changed meanwhile.',
  removed: 'You are no longer in this conversation.',
  onlyModerators: 'Only moderators can write here.',
  typing: (names, max = 2) =>
    names.length > max
      ? 'Several people are typing'
      : names.length === 1
        ? `${names[0]} is typing`
        : `${names.slice(0, -1).join(', ')} and ${names.at(-1)} are typing`,
  typingHere: 'typing…',
  connecting: 'Connecting…',
  reconnecting: 'Reconnecting…',
  waitingHere: (n) =>
    n === 1 ? 'One message is waiting to be sent.' : `${n} messages are waiting to be sent.`,
  backOnline: 'Back online.',
  refused: 'The service refused this session. Sign in again.',
  tryNow: 'Try now',
};
