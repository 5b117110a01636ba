import './account.css'

import { useMutation, useQuery } from '@tanstack/react-query'
import { type SubmitEvent, useState } from 'react'

import { changePassword, LEAST_PASSWORD, MAY, meQuery } from '@/api/account'
import { toProblem } from '@/api/problem'
import type { CurrentUser } from '@/api/types'
import { Field } from '@/lib/ui/field'
import { ProblemNotice } from '@/lib/ui/notice'
import { useTitle } from '@/lib/use-title'

import { SessionsSection } from './sessions-section'
import { TokensSection } from './tokens-section'

export function AccountPage() {
  const { data: me, error } = useQuery(meQuery)
  useTitle('Your account')
  return (
    <main className="page">
      {error && <ProblemNotice problem={toProblem(error)} />}
      {me && (
        <>
          <header>
            <h1>{me.name}</h1>
            <p className="muted">
              {me.role}: {MAY[me.role]}
            </p>
            <p className="muted">
              {me.projects.length > 0
                ? `You see the experiments of ${me.projects.join(', ')}`
                : 'You are not in a project yet'}
            </p>
          </header>
          <PasswordSection me={me} />
          <TokensSection />
          <SessionsSection />
        </>
      )}
    </main>
  )
}

function PasswordSection({ me }: { me: CurrentUser }) {
  return (
    <section aria-labelledby="password">
      <header className="section-header">
        <h2 id="password">Password</h2>
      </header>
      {me.has_password ? <PasswordForm me={me} /> : <p className="muted">This account has no password.</p>}
    </section>
  )
}

function PasswordForm({ me }: { me: CurrentUser }) {
  const change = useMutation({ mutationFn: changePassword })
  const [differ, setDiffer] = useState(false)
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const [current, password, again] = ['current', 'password', 'again'].map((name) => new FormData(form).get(name))
    if (typeof current !== 'string' || typeof password !== 'string') return
    change.reset()
    setDiffer(password !== again)
    if (password !== again) return
    const done = () => {
      form.reset()
    }
    change.mutate({ current, password }, { onSuccess: done })
  }

  return (
    <form className="password-form" onSubmit={submit} data-testid="password-form">
      <input name="username" autoComplete="username" defaultValue={me.name} hidden />
      <Field label="Current password">
        <input name="current" type="password" autoComplete="current-password" required />
      </Field>
      <Field label="New password" hint={`At least ${LEAST_PASSWORD} characters.`}>
        <input name="password" type="password" autoComplete="new-password" minLength={LEAST_PASSWORD} required />
      </Field>
      <Field label="New password again">
        <input name="again" type="password" autoComplete="new-password" required />
      </Field>
      {differ && <p role="alert">The new passwords differ: type the same one twice.</p>}
      {change.error && <ProblemNotice problem={toProblem(change.error)} />}
      {change.isSuccess && <p role="status">The password is changed. You are signed out everywhere else.</p>}
      <button type="submit" className="button primary" disabled={change.isPending}>
        Change password
      </button>
    </form>
  )
}
