import { Alert, Anchor, Button, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import type { Output } from '@parley/protocol';
import { call } from '../api/call.ts';
import type { ApiFailure } from '../api/call.ts';
import { sessionKey, useSession } from '../api/session.ts';
import { Card } from '../ui/card.tsx';
import { Field, PasswordField } from '../ui/field.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { SignInForm } from './sign-in.tsx';

/**
 * Screens for people who are not signed in: a forgotten password, and the links that mails carry. Their token is the fragment
 * of the address, which browsers send to nobody.
 */

const tokenOfLink = (): string => location.hash.slice(1);

const ToSignIn = (): ReactNode => (
  <Anchor component={Link} href="/" size="sm">
    To the sign-in
  </Anchor>
);

export function Forgot(): ReactNode {
  const [email, setEmail] = useState('');
  const ask = useMutation<Output<'password.forgot'>, ApiFailure>({
    mutationFn: () => call('password.forgot', { email }, null),
  });
  return (
    <Card title="A new password">
      {ask.data ? (
        <Alert color="teal" variant="light" role="status">
          {ask.data.mail
            ? 'If this address has an account, a link is on its way. It works for an hour.'
            : 'This service sends no mail. Whoever runs it makes a link with: npm run parley -- account reset <e-mail>'}
        </Alert>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            ask.mutate();
          }}
        >
          <Stack>
            <Field
              label="E-mail"
              type="email"
              autoComplete="username"
              required
              autoFocus
              value={email}
              set={setEmail}
            />
            {ask.error ? <Failed error={ask.error} /> : null}
            <Button type="submit" loading={ask.isPending}>
              Send a link
            </Button>
          </Stack>
        </form>
      )}
      <ToSignIn />
    </Card>
  );
}

/** Where CHAT_SIGN_UP is open; elsewhere the service says that it is not. */
export function SignUp(): ReactNode {
  const [email, setEmail] = useState('');
  const ask = useMutation<unknown, ApiFailure>({
    mutationFn: () => call('accounts.signUp', { email }, null),
  });
  return (
    <Card title="A new account">
      {ask.isSuccess ? (
        <Alert color="teal" variant="light" role="status">
          A link is on its way to {email}. It makes your account and your organization.
        </Alert>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            ask.mutate();
          }}
        >
          <Stack>
            <Field
              label="E-mail"
              type="email"
              autoComplete="username"
              required
              autoFocus
              value={email}
              set={setEmail}
            />
            {ask.error ? <Failed error={ask.error} /> : null}
            <Button type="submit" loading={ask.isPending}>
              Send a link
            </Button>
          </Stack>
        </form>
      )}
      <ToSignIn />
    </Card>
  );
}

export function Reset(): ReactNode {
  const [password, setPassword] = useState('');
  const reset = useMutation<unknown, ApiFailure>({
    mutationFn: () => call('password.reset', { token: tokenOfLink(), password }, null),
  });
  return (
    <Card title="Choose a new password">
      {reset.isSuccess ? (
        <Alert color="teal" variant="light" role="status">
          The password is changed, and all sessions are ended. Sign in with the new one.
        </Alert>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            reset.mutate();
          }}
        >
          <Stack>
            <PasswordField
              label="New password"
              description="10 characters or more; a few words do well."
              autoComplete="new-password"
              required
              autoFocus
              value={password}
              set={setPassword}
            />
            {reset.error ? <Failed error={reset.error} /> : null}
            <Button type="submit" loading={reset.isPending}>
              Set the password
            </Button>
          </Stack>
        </form>
      )}
      <ToSignIn />
    </Card>
  );
}

export function Invited(): ReactNode {
  const token = tokenOfLink();
  const session = useSession();
  const preview = useQuery<Output<'invitations.preview'>, ApiFailure>({
    queryKey: ['invitation', token],
    queryFn: () => call('invitations.preview', { token }, null),
  });
  if (preview.isPending || session.isPending) return <Loading what="the invitation" />;
  return (
    <Card title="You are invited">
      {preview.error ? (
        <>
          <Failed error={preview.error} />
          <ToSignIn />
        </>
      ) : preview.data.hasAccount && !session.data ? (
        <>
          <Text>{preview.data.email} has an account: sign in to accept.</Text>
          <SignInForm />
        </>
      ) : (
        <Accept token={token} invitation={preview.data} signedIn={Boolean(session.data)} />
      )}
    </Card>
  );
}

function Accept(props: {
  token: string;
  invitation: Output<'invitations.preview'>;
  signedIn: boolean;
}): ReactNode {
  const { token, invitation, signedIn } = props;
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [organizationName, setOrganizationName] = useState('');
  const makesAccount = !signedIn && !invitation.hasAccount;
  const makesOrganization = invitation.organization === null;
  const accept = useMutation<Output<'invitations.accept'>, ApiFailure>({
    mutationFn: () =>
      call(
        'invitations.accept',
        {
          token,
          ...(makesAccount ? { name, password } : {}),
          ...(makesOrganization ? { organizationName } : {}),
        },
        null,
      ),
    onSuccess: (session) => {
      client.setQueryData(sessionKey, session);
      navigate('/');
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        accept.mutate();
      }}
    >
      <Stack>
        <Text>
          {invitation.email} joins {invitation.organization ?? 'a new organization'} as {invitation.role}.
        </Text>
        {makesOrganization ? (
          <Field
            label="Name of your organization"
            autoComplete="organization"
            required
            value={organizationName}
            set={setOrganizationName}
          />
        ) : null}
        {makesAccount ? (
          <>
            <Field label="Your name" autoComplete="name" value={name} set={setName} />
            <PasswordField
              label="Choose a password"
              description="10 characters or more; a few words do well."
              autoComplete="new-password"
              required
              value={password}
              set={setPassword}
            />
          </>
        ) : null}
        {accept.error ? <Failed error={accept.error} /> : null}
        <Button type="submit" loading={accept.isPending}>
          Accept
        </Button>
      </Stack>
    </form>
  );
}
