import assert from 'node:assert/strict';
import { test } from 'node:test';
import { helloLimits, limits, plans, rateLimits, realtime } from '../src/index.ts';

test('SPEC 8: limits', () => {
  const expected = {
    textCharacters: 5000,
    metadataBytes: 4096,
    metadataDepth: 5,
    bodyBytes: 65536,
    attachmentsPerMessage: 10,
    groupMembers: 500,
    conversationNameCharacters: 200,
    pageDefault: 50,
    pageMax: 200,
    callsPageMax: 100,
    fileBytes: 26214400,
    uploadTicketSeconds: 600,
    downloadUrlSeconds: { min: 60, max: 3600, default: 300 },
    idempotencyHours: 24,
    dedupHours: 48,
    frameBytes: 16384,
    socketsPerUser: 10,
    presenceWatch: 200,
    eventsGap: 1000,
    webhookTimeoutMs: 10000,
    webhookToleranceSeconds: 300,
    webhookReplayHours: 72,
    ringTimeoutMs: 45000,
  };
  assert.deepEqual({ ...limits, ...expected }, limits);
});

test('DECISIONS, tokens: expiresIn 1 to 2,592,000, default 86,400; iat up to 60 s ahead; clientMsgId to 128', () => {
  assert.deepEqual(limits.tokenSeconds, { min: 1, max: 2592000, default: 86400 });
  assert.equal(limits.tokenLeewaySeconds, 60);
  assert.equal(limits.clientMsgIdCharacters, 128);
});

test('SPEC 8: rate limits', () => {
  assert.deepEqual(rateLimits.user, { perSecond: 20, burst: 40 });
  assert.deepEqual(rateLimits.send, { perSecond: 10, burst: 20 });
  assert.deepEqual(rateLimits.sendMinute, { perMinute: 300 });
  assert.deepEqual(rateLimits.upload, { perMinute: 30 });
  assert.equal(rateLimits.coldHistory.perSecond, 50);
});

test('SPEC 4, Realtime socket: times and sizes', () => {
  const expected = {
    subprotocol: 'chat.v1',
    authTimeoutMs: 5000,
    heartbeatMs: 25000,
    livenessMs: 60000,
    tokenExpiringMs: 300000,
    invalidFramesInARow: 10,
    typingThrottleMs: 3000,
    typingExpiryMs: 6000,
    receiptMs: 1000,
    presenceGraceMs: 30000,
    goawayMaxMs: 10000,
    drainMs: 30000,
  };
  assert.deepEqual({ ...realtime, ...expected }, realtime);
  assert.deepEqual(helloLimits, { maxFrameBytes: 16384, sendsPerSecond: 10 });
  assert.equal(limits.syncOverlapMs, 5000);
  assert.equal(limits.syncCursorDays, 30);
});

test('DECISIONS, plans: the table', () => {
  const rows: [string, number | null, number | null, number, number, number, number | null][] = [
    ['free', 1000, 1000, 100, 200, 4, 5],
    ['starter', 10000, 5000, 200, 400, 8, 50],
    ['growth', 100000, 20000, 500, 1000, 16, 500],
    ['scale', 1000000, 100000, 1000, 2000, 32, 5000],
    ['enterprise', null, null, 5000, 10000, 50, null],
  ];
  assert.deepEqual(
    Object.values(plans),
    rows.map(([name, mauLimit, connectionLimit, perSecond, burst, callParticipants, mediaGigabytes]) => ({
      name,
      mauLimit,
      connectionLimit,
      secretKey: { perSecond, burst },
      callParticipants,
      mediaBytes: mediaGigabytes === null ? null : mediaGigabytes * 1e9,
    })),
  );
});
