import { revokeToken, tokensQuery } from '@/api/people'
import type { Token } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Ago } from '@/lib/ui/ago'

export function TokenRow({ token, now }: { token: Token; now: number }) {
  const { name, scopes, expires_at: expires, used_at: used } = token
  return (
    <tr data-testid="token-row">
      <th scope="row">{name}</th>
      <td>{scopes.join(' and ')}</td>
      <td>{expires === null ? 'never' : <Ago at={expires} now={now} />}</td>
      <td>{used === null ? 'never' : <Ago at={used} now={now} />}</td>
      <td>
        <RevokeButton token={token} />
      </td>
    </tr>
  )
}

function RevokeButton({ token }: { token: Token }) {
  const revoke = useAction(() => revokeToken(token.id), { changes: tokensQuery.queryKey })
  return (
    <ActionDialog
      label="Revoke"
      title={`Revoke “${token.name}”?`}
      dismiss="Keep it"
      danger
      pending={revoke.pending}
      problem={revoke.problem}
      onSubmit={() => revoke.run()}
    >
      <p>Programs that use it are refused from their next request on. This cannot be undone.</p>
    </ActionDialog>
  )
}
