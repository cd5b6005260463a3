/** plans#sizes, as data. Sizes are in bytes, times in the unit that their name says. */
export const limits = {
  textCharacters: 5_000,
  metadataBytes: 4_096,
  metadataDepth: 5,
  bodyBytes: 64 * 1024,
  attachmentsPerMessage: 10,
  groupMembers: 500,
  conversationNameCharacters: 200,
  /**
   * How many conversations a user's clients may create: per hour, and in all as long as they are not deleted
   * (conversations#create).
   */
  clientConversationsPerHour: 100,
  clientConversations: 10_000,
  userNameCharacters: 200,
  imageUrlCharacters: 2_048,
  pageDefault: 50,
  pageMax: 200,
  /** A page of a list ends early if its JSON would be larger; the rest is on the next page. */
  pageBytes: 1024 * 1024,
  callsPageMax: 100,
  fileBytes: 25 * 1024 * 1024,
  filenameCharacters: 255,
  uploadTicketSeconds: 600,
  downloadUrlSeconds: { min: 60, max: 3_600, default: 300 },
  idempotencyHours: 24,
  dedupHours: 48,
  auditDays: 365,
  requestLogDays: 7,
  clientMsgIdCharacters: 128,
  /** reactions#limits. */
  emojiBytes: 64,
  emojiPerMessage: 20,
  reactorsShown: 3,
  reactionChanges: 20,
  /** pins#limit. */
  pinsPerConversation: 100,
  /** uploads#voice. */
  voiceMs: 3_600_000,
  waveformBytes: 128,
  /** polls#poll. */
  pollQuestionCharacters: 300,
  pollOptionCharacters: 100,
  pollOptions: { min: 2, max: 10 },
  /** mentions#bounds. */
  mentionsPerMessage: 50,
  blocksPerUser: 1_000,
  restrictionReasonCharacters: 500,
  slowModeSeconds: 21_600,
  /** joining#links. */
  invitesPerConversation: 20,
  inviteUses: 10_000,
  inviteSeconds: { min: 60, max: 2_592_000, default: 604_800 },
  /** Of all word lists of an environment together. */
  words: 5_000,
  wordLists: 10,
  wordCharacters: 64,
  reportNoteCharacters: 1_000,
  reportDays: 180,
  frameBytes: 16 * 1024,
  socketsPerUser: 10,
  presenceWatch: 200,
  deliveredItems: 200,
  eventsGap: 1_000,
  syncOverlapMs: 5_000,
  syncCursorDays: 30,
  hookTimeoutMs: 1_000,
  hookTimeoutMsMin: 100,
  hookTimeoutMsMax: 3_000,
  hookAnswerBytes: 16_384,
  hookReasonCharacters: 500,
  webhookEndpoints: 20,
  webhookTimeoutMs: 10_000,
  webhookToleranceSeconds: 300,
  webhookReplayHours: 72,
  webhookDisableHours: 72,
  webhookRotationHours: 24,
  webhookUrlCharacters: 2_048,
  webhookDescriptionCharacters: 500,
  pushTokenCharacters: 4_096,
  pushDevicesPerUser: 50,
  /** analytics#range, in days, and for how many days hourly rows are kept. */
  analyticsDays: { hour: 7, day: 366 },
  analyticsHoursKeptDays: 90,
  ringTimeoutMs: 45_000,
  /** A participant whose socket has been closed for this long has left (calls#gone). */
  callGoneMs: 30_000,
  callConsumeAtOnce: 50,
  /** Media signalling frames of one participant; a participant who sends more is removed from the call. */
  callFrames: { perSecond: 50, burst: 500 },
  /** Bits per second that a participant may send, and be sent. */
  callIncomingBitrate: 6_000_000,
  callOutgoingBitrate: 40_000_000,
  tokenSeconds: { min: 1, max: 2_592_000, default: 86_400 },
  tokenLeewaySeconds: 60,
} as const;

/** socket#auth, socket#heartbeat, presence#grace. */
export const realtime = {
  subprotocol: 'chat.v1',
  authTimeoutMs: 5_000,
  heartbeatMs: 25_000,
  livenessMs: 60_000,
  tokenExpiringMs: 5 * 60_000,
  invalidFramesInARow: 10,
  typingThrottleMs: 3_000,
  typingExpiryMs: 6_000,
  receiptMs: 1_000,
  deliveredMs: 1_000,
  presenceGraceMs: 30_000,
  goawayMaxMs: 10_000,
  drainMs: 30_000,
  sendsPerSecond: 10,
} as const;

export interface BucketLimit {
  perSecond: number;
  burst: number;
}
/** The number of uses in a sliding window: of a minute here, of `windowMs` in LongWindowLimit. */
export interface WindowLimit {
  perMinute: number;
}
export interface LongWindowLimit {
  max: number;
  windowMs: number;
}

/** plans#rates. The secret key's own rate is in the plan. */
export const rateLimits = {
  /** Requests without a valid credential, by address (plans#addresses). */
  anonymous: { perSecond: 100, burst: 200 },
  user: { perSecond: 20, burst: 40 },
  /** For a person signed in to the dashboard, whose pages make several requests at once. */
  account: { perSecond: 20, burst: 100 },
  send: { perSecond: realtime.sendsPerSecond, burst: 20 },
  sendMinute: { perMinute: 300 },
  upload: { perMinute: 30 },
  reaction: { perSecond: 5, burst: 20 },
  report: { perMinute: 10 },
  /** Tries to join groups. */
  join: { max: 60, windowMs: 3_600_000 },
  coldHistory: { perSecond: 50, burst: 50 },
  /** Connecting to the database of one slot because somebody asked: to test, migrate or promote it. */
  slotTries: { perMinute: 60 },
  /** Wrong sign-ins for one account, and from one address (dashboard#guessing). */
  signInAccount: { max: 10, windowMs: 15 * 60_000 },
  signInAddress: { max: 100, windowMs: 15 * 60_000 },
  /** New users by development tokens, which anybody can make. */
  unsignedUsersAddress: { perMinute: 60 },
  unsignedUsersEnvironment: { max: 600, windowMs: 3_600_000 },
  /** Stored answers for a client's Idempotency-Keys, in KB (docs/rest.md). */
  userAnswers: { perSecond: 10, burst: 10_000 },
  /** Mails with a link to one e-mail address. */
  mailsToAddress: { max: 5, windowMs: 15 * 60_000 },
} as const satisfies Record<string, BucketLimit | WindowLimit | LongWindowLimit>;
