import { Followers } from './sync/followers.ts';
import type { FollowersOptions } from './sync/followers.ts';

/** For `createClient({ catchUp: catchUpAll, … })`: no event of any conversation is missed across reconnects. */
export const catchUpAll = (options: FollowersOptions): Followers => new Followers(options);
