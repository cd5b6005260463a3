/** api#ids. The rest of an id is a ULID in lower case; a direct conversation's is a hash. */
export const idPrefixes = {
  environment: 'env_',
  organization: 'org_',
  conversation: 'conv_',
  directConversation: 'conv_dm_',
  message: 'msg_',
  attachment: 'att_',
  webhook: 'wh_',
  delivery: 'whd_',
  event: 'evt_',
  request: 'req_',
  call: 'call_',
  report: 'rep_',
  session: 'ses_',
  audit: 'aud_',
  account: 'acc_',
  accountSession: 'sess_',
  passkey: 'pk_',
  invitation: 'inv_',
  inviteLink: 'lnk_',
} as const;
export type IdKind = keyof typeof idPrefixes;

export const userIdPattern = '^[A-Za-z0-9_\\-@.:]{1,128}$';
export const environmentIdPattern = '^env_[a-z0-9]{1,40}$';
/** `sk_live_<keyId>_<secret>` (identity#secret-key). */
export const secretKeyPattern = '^sk_live_([A-Za-z0-9]{16})_([A-Za-z0-9]{32})$';

/** 1 to 255 visible ASCII characters. */
export const idempotencyKeyPattern = '^[!-~]{1,255}$';

const ulidAlphabet = '0123456789abcdefghjkmnpqrstvwxyz';

/** The time of the last id as text, because many ids are made in one millisecond. */
let last = { ms: NaN, text: '' };

function timeText(ms: number): string {
  if (last.ms === ms) return last.text;
  let text = '';
  let time = ms;
  for (let i = 0; i < 10; i++) {
    text = ulidAlphabet[time % 32]! + text;
    time = Math.floor(time / 32);
  }
  last = { ms, text };
  return text;
}

/** A lower-case ULID: 10 characters for the time, 16 for the 10 random bytes. */
export function ulid(timeMs: number, random: Uint8Array): string {
  let out = timeText(timeMs);
  let bits = 0;
  let value = 0;
  for (let i = 0; i < 10; i++) {
    value = (value << 8) | random[i]!;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      out += ulidAlphabet[(value >>> bits) & 31]!;
    }
    value &= (1 << bits) - 1;
  }
  return out;
}

/** When an id was made, in milliseconds since the epoch; null if it contains no ULID. */
export function idTime(id: string): number | null {
  const [, text] = /^[a-z]+_([0-9a-hjkmnp-tv-z]{10})[0-9a-hjkmnp-tv-z]{16}$/.exec(id) ?? [];
  if (text === undefined) return null;
  return [...text].reduce((time, letter) => time * 32 + ulidAlphabet.indexOf(letter), 0);
}
