import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { toProblem } from '@/api/problem'
import type { Token } from '@/api/types'
import { useAction } from '@/api/use-action'
import { revokeUserToken, userTokensQuery } from '@/api/users'
import { ProblemNotice } from '@/lib/ui/notice'
import { TokenRow, TokenTable } from '@/lib/ui/token-table'

/** The tokens of a user. */
export function UserTokens({ user, name, now }: { user: string; name: string; now: number }) {
  const { data, error } = useQuery(userTokensQuery(user))
  return (
    <section aria-labelledby="user-tokens" data-testid="user-tokens">
      <header className="section-header">
        <h2 id="user-tokens">Tokens of {name}</h2>
        <Link to="/people" className="button">
          Close
        </Link>
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {data?.items.length === 0 && <p className="muted">This user has no tokens.</p>}
      {data && data.items.length > 0 && (
        <TokenTable>
          {data.items.map((token) => (
            <UserToken key={token.id} user={user} token={token} now={now} />
          ))}
        </TokenTable>
      )}
    </section>
  )
}

function UserToken({ user, token, now }: { user: string; token: Token; now: number }) {
  const revoke = useAction(() => revokeUserToken(user, token), { changes: userTokensQuery(user).queryKey })
  return <TokenRow token={token} now={now} revoke={revoke} />
}
