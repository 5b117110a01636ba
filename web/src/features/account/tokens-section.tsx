import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { revokeToken, tokensQuery } from '@/api/people'
import { toProblem } from '@/api/problem'
import type { Token } from '@/api/types'
import { useAction } from '@/api/use-action'
import { Command } from '@/lib/ui/copy-button'
import { Notice, ProblemNotice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'
import { TokenRow, TokenTable } from '@/lib/ui/token-table'

import { CreateTokenButton, type NewToken } from './create-token-button'

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
