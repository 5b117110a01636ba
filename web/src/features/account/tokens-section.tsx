import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { createToken, revokeToken, tokensQuery } from '@/api/account'
import { toProblem } from '@/api/problem'
import type { Scope, Token } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Command } from '@/lib/ui/copy-button'
import { Field } from '@/lib/ui/field'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'
import { TokenRow, TokenTable } from '@/lib/ui/token-table'

/** The user's own tokens: what programs sign in with. */
export function TokensSection() {
  const { data, error } = useQuery(tokensQuery)
  const [made, setMade] = useState<NewToken>()
  const now = useNow(10_000)
  return (
    <section className="tokens" aria-labelledby="tokens">
      <header className="section-header">
        <h2 id="tokens">Tokens</h2>
        <CreateTokenButton onMade={setMade} />
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {made && <Made token={made} />}
      {data?.items.length === 0 && (
        <p className="muted">
          You have no tokens yet. A program signs in with one of your tokens and can do no more than you can.
        </p>
      )}
      {data && data.items.length > 0 && (
        <TokenTable>
          {data.items.map((token) => (
            <OwnToken key={token.id} token={token} now={now} />
          ))}
        </TokenTable>
      )}
    </section>
  )
}

function OwnToken({ token, now }: { token: Token; now: number }) {
  const revoke = useAction(() => revokeToken(token), { changes: tokensQuery.queryKey })
  return <TokenRow token={token} now={now} revoke={revoke} />
}

function Made({ token }: { token: NewToken }) {
  return (
    <Notice title={`Copy “${token.name}” now: it is not shown again`} testId="new-token">
      <p>Keep it in a file that only you can read, and name that file in FERRET_TOKEN_FILE.</p>
      <Command text={token.token} label="token" />
    </Notice>
  )
}

const DAY_SECONDS = 24 * 3600

type NewToken = Awaited<ReturnType<typeof createToken>>

function CreateTokenButton({ onMade }: { onMade: (token: NewToken) => void }) {
  const create = useAction(
    async (form: FormData) => {
      onMade(await createToken(wanted(form)))
    },
    { changes: tokensQuery.queryKey },
  )
  return (
    <ActionDialog
      label="New token"
      confirm="Create"
      title="Create a token for a program"
      dismiss="Close"
      pending={create.pending}
      problem={create.problem}
      onSubmit={create.run}
    >
      <Field label="Name" hint="For example the program that uses it.">
        <input name="name" type="text" maxLength={100} required />
      </Field>
      <Field label="Scope" hint="A token never allows more than your role.">
        <select name="scope">
          <option value="read">reading only</option>
          <option value="write">reading and changing</option>
        </select>
      </Field>
      <Field label="Days until it expires" hint="0 means never.">
        <input name="days" type="number" min={0} max={3660} step={1} defaultValue={90} required />
      </Field>
    </ActionDialog>
  )
}

function wanted(form: FormData) {
  const name = form.get('name')
  const scopes: Scope[] = form.get('scope') === 'write' ? ['read', 'write'] : ['read']
  const days = Number(form.get('days'))
  return {
    name: typeof name === 'string' ? name.trim() : '',
    scopes,
    expires_seconds: days === 0 ? null : days * DAY_SECONDS,
  }
}
