import './sign-in.css'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, type SubmitEvent, useEffect, useId } from 'react'

import { beginAtProvider, signIn, signInQuery } from '@/api/account'
import { type ApiProblem, toProblem } from '@/api/problem'
import { infoQuery } from '@/api/queries'
import { noteReturn } from '@/lib/sign-in-address'
import { ProblemNotice } from '@/lib/ui/notice'
import { toastFailure } from '@/lib/ui/toasts'
import { useTitle } from '@/lib/use-title'

interface Props {
  /** The problem with the token of the address, if it was refused. */
  refused: ApiProblem | undefined
  children: ReactNode
}

/** Shows the dashboard with a session, and the sign-in form without. */
export function SessionGate({ refused, children }: Props) {
  const info = useQuery(infoQuery)
  useEffect(() => {
    if (refused && info.isSuccess) toastFailure('Sign in with this address', refused)
  }, [refused, info.isSuccess])
  if (info.isPending) return null
  if (info.error === null) return children

  const problem = toProblem(info.error)
  if (problem.status === 401) return <SignIn refused={refused} />
  return (
    <main className="page narrow">
      <ProblemNotice problem={problem}>
        <button type="button" className="button" onClick={() => void info.refetch()}>
          Try again
        </button>
      </ProblemNotice>
    </main>
  )
}

function SignIn({ refused }: { refused: ApiProblem | undefined }) {
  const queryClient = useQueryClient()
  const attempt = useMutation({ mutationFn: signIn, onSuccess: () => queryClient.resetQueries() })
  const field = useId()
  useTitle('Sign in')

  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const [name, secret] = [form.get('username'), form.get('secret')]
    if (typeof name !== 'string' || typeof secret !== 'string') return
    attempt.mutate(name.trim() ? { name: name.trim(), password: secret } : { token: secret.trim() })
  }

  return (
    <main className="sign-in">
      <form onSubmit={submit} data-testid="sign-in">
        <h1>Sign in to Ferret</h1>
        {refused && !attempt.isError && <RefusedAddress problem={refused} />}
        <ProviderButton />
        <label htmlFor={`${field}name`}>Name</label>
        <input
          id={`${field}name`}
          name="username"
          autoComplete="username"
          autoCapitalize="none"
          placeholder="leave empty for the admin token"
          autoFocus
        />
        <label htmlFor={`${field}secret`}>Password or admin token</label>
        <input id={`${field}secret`} name="secret" type="password" autoComplete="current-password" required />
        {attempt.isError && <Refusal problem={toProblem(attempt.error)} />}
        <button type="submit" className="button primary" disabled={attempt.isPending}>
          Sign in
        </button>
        <p className="muted small">
          The admin token is in <code>FERRET_HOME/admin.token</code> on the server (<code>~/.ferret/admin.token</code>{' '}
          unless you set it). The address that <code>ferret serve</code> prints signs one browser in by itself;{' '}
          <code>ferret dashboard</code> prints another.
        </p>
      </form>
    </main>
  )
}

/** The address did not sign in. That of `ferret serve` works once. */
function RefusedAddress({ problem }: { problem: ApiProblem }) {
  if (problem.code !== 'auth.invalid') return <ProblemNotice problem={problem} />
  return (
    <section className="problem-notice" role="alert">
      <h2>This link was used, or it is no longer valid</h2>
      <p>
        Run <code>ferret dashboard</code> on the server for a new one.
      </p>
      <p className="muted small">
        <code>{problem.code}</code>
      </p>
    </section>
  )
}

function Refusal({ problem }: { problem: ApiProblem }) {
  return (
    <p className="sign-in-problem" role="alert">
      {problem.title}. {problem.detail}
    </p>
  )
}

/** A button to sign in at the service's provider, which leads back to this page. */
function ProviderButton() {
  const { data: ways } = useQuery(signInQuery)
  const begin = useMutation({
    mutationFn: beginAtProvider,
    onSuccess: ({ url }) => {
      noteReturn(window.location, window.sessionStorage)
      window.location.assign(url)
    },
  })
  if (!ways?.provider) return null
  return (
    <>
      <button
        type="button"
        className="button primary"
        disabled={begin.isPending}
        onClick={() => {
          begin.mutate()
        }}
      >
        Sign in with {ways.provider}
      </button>
      {begin.error && <ProblemNotice problem={toProblem(begin.error)} />}
      <p className="sign-in-or muted small">or with an account on this server</p>
    </>
  )
}
