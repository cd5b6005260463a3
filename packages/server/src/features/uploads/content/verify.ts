import type { StoredObject } from '../../../platform/storage/port.ts';
import { allowedType, essence, NOT_ALLOWED, ruleOf } from './allowed.ts';
import { detect } from './detect.ts';
import { dimensions, isSide } from './dimensions.ts';

/** `mimeType` is what the bytes show, or the declared type if they do not show enough. */
export type Verified =
  { ok: true; mimeType: string; width?: number; height?: number } | { ok: false; reason: string };

const refuse = (reason: string): Verified => ({ ok: false, reason });

/** Whether the stored object is what its upload announced (uploads#complete). */
export function verify(declared: string, filename: string, size: number, stored: StoredObject): Verified {
  const announced = allowedType(declared, filename);
  const rule = ruleOf(declared);
  if (!announced.ok || !rule) return refuse(announced.ok ? NOT_ALLOWED : announced.reason);
  if (stored.size !== size) return refuse(`the stored file has ${stored.size} bytes, not ${size}`);
  const found = detect(stored.head);
  if (found?.kind === 'blocked') return refuse(NOT_ALLOWED);
  if (rule.kind !== 'any' && !rule.found.includes(found?.mime ?? null)) {
    const visual = rule.kind === 'image' || rule.kind === 'video';
    return refuse(visual ? 'not a valid image or video' : `the content is not ${essence(declared)}`);
  }
  if (rule.kind !== 'image') {
    // A zip may be any office file, so there the declared type says more than the bytes.
    const telling = rule.kind !== 'document' && found?.kind === rule.kind;
    return { ok: true, mimeType: telling ? found.mime : essence(declared) };
  }

  const measured = dimensions(stored.head) ?? providerSize(stored);
  // If all bytes were looked at, the dimensions are missing and the file is refused; otherwise they may stand further
  // behind, and stay unknown.
  if (!measured && stored.head.length >= stored.size) return refuse('not a valid image or video');
  return { ok: true, mimeType: found?.mime ?? essence(declared), ...measured };
}

const providerSize = ({ width = 0, height = 0 }: StoredObject) =>
  isSide(width) && isSide(height) ? { width, height } : null;
