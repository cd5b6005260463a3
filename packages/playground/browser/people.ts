/** The people of the demo. They do not sign in: development environments accept a token that the page creates. */

export interface Person {
  id: string;
  name: string;
  about: string;
}

export const samples: readonly Person[] = [
  { id: 'nora-lind', name: 'Nora Lind', about: 'Support at Lumen, a lamp shop' },
  { id: 'tomas-barreiro', name: 'Tomás Barreiro', about: 'Customer, has a lamp that wobbles' },
  { id: 'ines-rocha', name: 'Ines Rocha', about: 'Packs the parcels' },
  { id: 'sami-korhonen', name: 'Sami Korhonen', about: 'Drives to the post office' },
  { id: 'mei-okafor', name: 'Mei Okafor', about: 'Customer, wants an engraving' },
  { id: 'jonas-aalto', name: 'Jonas Aalto', about: 'Keeps the books' },
];

export const bot: Person = { id: 'pip', name: 'Pip', about: 'A bot that answers' };

const known = new Map([...samples, bot].map((person) => [person.id, person.name]));

/** The name of a user without one: the name of the sample person, or the id with spaces and capitals. */
export const nameOf = (id: string): string =>
  known.get(id) ??
  id
    .split(/[-_.]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join(' ')
    .trim();

export const firstName = (id: string): string => nameOf(id).split(' ')[0]!;

/** A name as people type it to a user id, or null. */
export function userIdOf(name: string): string | null {
  const id = name.trim().normalize('NFKD').replaceAll(/[̀-ͯ]/g, '').toLowerCase().replaceAll(/\s+/g, '-');
  return /^[A-Za-z0-9_\-@.:]{1,128}$/.test(id) ? id : null;
}

const encode = (value: object): string =>
  btoa(JSON.stringify(value)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** A JWT without a signature, accepted by development environments alone. */
export function developmentToken(userId: string): string {
  const now = Math.floor(Date.now() / 1000);
  return `${encode({ alg: 'none', typ: 'JWT' })}.${encode({ sub: userId, iat: now, exp: now + 3600 })}.`;
}

/** Of this tab: another tab may be somebody else. */
const key = 'parley-demo-user';
export const rememberedUser = (): string | null => sessionStorage.getItem(key);
export const rememberUser = (id: string): void => sessionStorage.setItem(key, id);
export const forgetUser = (): void => sessionStorage.removeItem(key);
