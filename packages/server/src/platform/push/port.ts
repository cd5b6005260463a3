import type { OutboundRequest, OutboundResponse } from '../outbound/outbound.ts';

/** What a device gets. With an empty title and body it is a data-only push (push#data-only). */
export interface PushNotification {
  title: string;
  body: string;
  /** The number on the app's icon: the user's total unread count. */
  badge: number;
  /** A later notification with the same key replaces the earlier one. */
  collapseKey: string;
  data: Record<string, string>;
  /** Set for the push of a call: the app shows it on Android, the system does on iOS. */
  call?: 'incoming' | 'missed';
  priority: 'high' | 'normal';
  ttlSeconds: number;
}

export type PushOutcome =
  | { kind: 'sent'; receiptId?: string }
  /** The token is no longer valid: remove the device. */
  | { kind: 'dead'; reason: string }
  /** The provider has trouble: try again later, after at least `retryAfterMs` if the provider named a time. */
  | { kind: 'retry'; reason: string; retryAfterMs?: number }
  /** Our credentials or our request are wrong: trying again changes nothing, and the token may be good. */
  | { kind: 'rejected'; reason: string };

export type PushProviderName = 'fcm' | 'apns' | 'expo' | 'webpush';

export interface PushProvider {
  /**
   * Never throws; reasons are short codes without tokens or secrets.
   * @param voipToken a token of the same device for incoming calls (APNs).
   */
  send(token: string, notification: PushNotification, voipToken?: string | null): Promise<PushOutcome>;
  /**
   * Only where the vendor reports a dead token later (Expo): the outcome of earlier sends by receipt id,
   * for up to 1,000 ids. Ids without an answer yet are absent.
   */
  receipts?(receiptIds: readonly string[]): Promise<Map<string, PushOutcome>>;
  close(): void;
}

export type HttpResponse = Omit<OutboundResponse, 'truncated'>;

export interface PushDependencies {
  /** The guarded outbound request: a Web Push endpoint is an address that a client entered. */
  request: (request: OutboundRequest) => Promise<HttpResponse>;
  now: () => number;
  randomBytes: (size: number) => Buffer;
}

/** The vendors' addresses, replaced in tests; a customer's credentials never say where to send. */
export interface PushEndpoints {
  fcm?: string;
  oauth?: string;
  apns?: string;
  expo?: string;
}
