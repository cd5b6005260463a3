import type { Transporter } from 'nodemailer';
import type { Logger } from '../logging.ts';

export interface Mail {
  to: string[];
  subject: string;
  text: string;
}

export interface Mailer {
  send(mail: Mail): Promise<void>;
  close(): void;
}

const timeoutMs = 10_000;

/** Sends by SMTP to CHAT_SMTP_URL (smtp:// or smtps://); if that is unset, the log says what would have been sent. */
export function createMailer(options: { url: string | undefined; from: string }, logger: Logger): Mailer {
  if (options.url === undefined)
    return {
      send: (mail) => {
        logger.warn(
          { to: mail.to, subject: mail.subject, body: mail.text },
          'mail (CHAT_SMTP_URL is not set)',
        );
        return Promise.resolve();
      },
      close: () => undefined,
    };
  const { url, from } = options;
  // Most processes send no mail: the library is loaded with the first one.
  let transport: Promise<Transporter> | undefined;
  const open = async (): Promise<Transporter> => {
    const { createTransport } = await import('nodemailer');
    return createTransport(
      {
        url,
        connectionTimeout: timeoutMs,
        greetingTimeout: timeoutMs,
        socketTimeout: timeoutMs,
        disableFileAccess: true,
        disableUrlAccess: true,
      },
      { from },
    );
  };
  return {
    send: async (mail) => {
      await (await (transport ??= open())).sendMail(mail);
    },
    close: () => void transport?.then((opened) => opened.close()),
  };
}
