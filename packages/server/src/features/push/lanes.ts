import { createHash } from 'node:crypto';

/**
 * Lanes of web push. A client enters the address that its pushes go to, so a lane is one host of one environment: a slow
 * one delays only those who use it. The push services of browsers have lanes of their own. All other hosts of an
 * environment, and the lanes of single users, share a fixed number of lanes, which bounds what an environment can
 * occupy of the workers. Keys are negative, because those of other providers are not.
 */

const lanesPerEnv = 1_024;
const sharedLanes = 32;
/** How wide a shared lane grows: the hosts behind it may all stop answering at once. */
export const sharedWidth = 4;
/** Where browsers are pushed to: Chrome, Firefox, Safari, Edge. */
const services = [
  /^fcm\.googleapis\.com$/,
  /^updates\.push\.services\.mozilla\.com$/,
  /(^|\.)push\.apple\.com$/,
  /(^|\.)notify\.windows\.com$/,
];

/** @param subscription the JSON of a PushSubscription. */
export function hostLane(env: number, subscription: string): number {
  const host = hostOf(subscription);
  const service = services.findIndex((one) => one.test(host));
  return service >= 0 ? laneAt(env, sharedLanes + service) : shared(env, `host ${host}`);
}

export const userLane = (env: number, usr: number): number => shared(env, `user ${usr}`);

const shared = (env: number, name: string): number =>
  laneAt(env, createHash('sha256').update(name).digest().readUInt32BE() % sharedLanes);

export const isSharedLane = (key: number): boolean => key < 0 && (-key - 1) % lanesPerEnv < sharedLanes;

const laneAt = (env: number, lane: number): number => -(env * lanesPerEnv + lane + 1);

function hostOf(subscription: string): string {
  try {
    return new URL((JSON.parse(subscription) as { endpoint: string }).endpoint).host;
  } catch {
    return '';
  }
}
