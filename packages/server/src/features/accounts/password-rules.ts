import { ApiError } from '@parley/protocol';

/**
 * Which passwords are refused (docs/accounts.md): too short, too long, or among those that attackers try first. There
 * are no rules about kinds of characters, and passwords do not expire. Common passwords are recognised by their form,
 * not from a list: a common word with digits and signs around it, repeated, or with digits for letters; a row of the
 * keyboard; a sequence; a short pattern repeated.
 */

const passwordLength = { min: 10, max: 256 };

/** Words that people begin with when a password must be long, in lower case. */
const commonWords = new Set(
  (
    'password passwort passw passwd pass motdepasse contrasena senha parola haslo wachtwoord mypassword thepassword ' +
    'newpassword nopassword default temp test testing tester example changeme letmein welcome willkommen bienvenue ' +
    'hello hallo hola login signin access account admin administrator root user username guest owner manager master ' +
    'system server service computer internet google facebook twitter instagram youtube linkedin microsoft windows ' +
    'apple samsung android iphone parley chat message secret topsecret private security secure ' +
    'qwerty qwertz azerty asdf asdfgh zxcvbn qazwsx iloveyou loveyou ilovegod lovely love lover forever ' +
    'sunshine princess princesa prince angel angels baby babygirl babyboy honey sweetheart sweety beautiful ' +
    'football baseball basketball soccer hockey golf tennis volleyball softball swimming liverpool chelsea arsenal ' +
    'manchester barcelona realmadrid juventus yankees cowboys steelers lakers chicago ' +
    'dragon monkey tiger lion eagle falcon shadow panther butterfly dolphin kitty kitten puppy horse mustang ' +
    'superman batman spiderman starwars pokemon naruto minecraft fortnite warcraft playboy metallica nirvana ' +
    'superstar rockstar rockyou hunter killer ninja warrior soldier wizard phoenix thunder lightning ' +
    'summer winter spring autumn sommer herbst january february march april august september october november december ' +
    'monday tuesday wednesday thursday friday saturday sunday ' +
    'michael jennifer jessica ashley daniel matthew christopher alexander alexandra nicholas elizabeth michelle ' +
    'anthony jonathan joshua andrew thomas robert charlie william richard samantha stephanie christian ' +
    'jordan maggie ginger pepper cookie chocolate cheese banana orange flower purple yellow silver golden diamond ' +
    'whatever something nothing trustno1 trustnoone blink freedom liberty america canada england germany france ' +
    'jesus jesuschrist christ blessed church heaven family mother father brother sister friend friends ' +
    'mercedes porsche ferrari corvette camaro harley yamaha honda toyota ' +
    'strawberry california australia brooklyn hollywood tinkerbell spongebob hellokitty undertaker linkinpark monster ' +
    'bestfriend teddybear happiness remember engineer student teacher doctor fuckyou fuckoff asshole bullshit myspace ' +
    'friendster hollister alessandro francesco francesca sebastian victoria isabella charlotte benjamin gabriel ' +
    'christina christine katherine valentina unknown nobody somebody dearbook woaini tianya ' +
    '1029384756 4815162342 1123581321 789456123 147258369 741852963 963852741 159753 159357 1314520 5201314'
  ).split(' '),
);

const rows = [
  '`1234567890-=',
  'qwertyuiop[]',
  'asdfghjkl;',
  'zxcvbnm,./',
  'qwertzuiop',
  'yxcvbnm',
  'azertyuiop',
  'qsdfghjklm',
  'abcdefghijklmnopqrstuvwxyz',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.',
  '1q2w3e4r5t6y7u8i9o0p',
  'q1w2e3r4t5y6u7i8o9p0',
  'qazwsxedcrfvtgbyhnujmikolp',
  'a1b2c3d4e5f6g7h8i9j0',
];
const reversed = (text: string): string => [...text].reverse().join('');
const runs = [...rows, ...rows.map(reversed)];

const spelled: Record<string, string> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
};
const unleet = (text: string): string => text.replaceAll(/[013457@$!]/g, (sign) => spelled[sign]!);

const isRun = (piece: string): boolean => piece.length >= 3 && runs.some((run) => run.includes(piece));
/** A filler is what people put around words: a number of up to four digits, or one letter. */
const isFiller = (piece: string): boolean => /^(\d{1,4}|\p{L})$/u.test(piece);
const isSigns = (piece: string): boolean => /^[ -/:-@[-`{-~]{1,3}$/.test(piece);
const isRepeated = (text: string): boolean => /^(.{1,6}?)\1+.{0,3}$/su.test(text);

/** Passwords of more characters are not checked for common words: so many words are hard to guess. */
const maxChecked = 40;
/** A password made of at most this many pieces is guessed early, however long the pieces are. */
const fewPieces = 3;

/** @param own words that belong to the account, such as its address and the names of its organizations. */
export function isCommonPassword(password: string, own: readonly string[] = []): boolean {
  const text = password.normalize('NFKC').toLowerCase();
  if (isRepeated(text)) return true;
  if (text.length > maxChecked) return false;
  const words = new Set([...commonWords, ...own.filter((word) => word.length >= 3)]);
  const isPiece = (piece: string): boolean =>
    words.has(piece) || words.has(unleet(piece)) || isRun(piece) || isFiller(piece);
  return fewestPieces(text, isPiece) <= fewPieces;
}

/**
 * The smallest number of pieces that make up the text, not counting signs between them; Infinity if it is not made of
 * pieces.
 */
function fewestPieces(text: string, isPiece: (piece: string) => boolean): number {
  const fewest = [0];
  for (let end = 1; end <= text.length; end++) {
    let best = Infinity;
    for (let start = 0; start < end; start++) {
      const before = fewest[start]!;
      if (before >= best) continue;
      const piece = text.slice(start, end);
      if (isSigns(piece)) best = before;
      else if (before + 1 < best && isPiece(piece)) best = before + 1;
    }
    fewest[end] = best;
  }
  return fewest[text.length]!;
}

export function checkNewPassword(password: string, own: readonly string[], param = 'password'): void {
  const refuse = (message: string): never => {
    throw new ApiError('invalid_request', { param, message });
  };
  const length = [...password].length;
  if (length < passwordLength.min) refuse(`${param} must have at least ${passwordLength.min} characters.`);
  if (length > passwordLength.max) refuse(`${param} must have at most ${passwordLength.max} characters.`);
  if (
    isCommonPassword(
      password,
      own.map((word) => word.toLowerCase()),
    )
  )
    refuse(`${param} is among those that are guessed first: choose another one.`);
}

/** Words that the account's password must not be made of. */
export const ownWords = (email: string, ...names: string[]): string[] => [
  email,
  ...[email, ...names].flatMap((text) => text.split(/[^\p{L}\p{N}]+/u)),
];
