import { Link } from '@tanstack/react-router'

import type { Round } from '@/api/types'
import { formatBytes, formatSeconds, secondsBetween } from '@/lib/format'
import { formatMetric } from '@/lib/metrics'
import { Digest } from '@/lib/ui/digest'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'

interface Props {
  id: string
  rounds: Round[]
  selected: Round
}

const COLUMNS = [
  'Round',
  'State',
  'Accepted',
  'Rejected',
  'Sent',
  'Received',
  'Duration',
  'Train loss',
  'Eval loss',
  'Rouge-L',
  'Model',
]

const NUMBERS = COLUMNS.slice(2, -1)

export function RoundsTable({ id, rounds, selected }: Props) {
  return (
    <div className="table-scroll tall" tabIndex={0} role="region" aria-label="Rounds">
      <table data-testid="rounds-table">
        <TableHead columns={COLUMNS} numbers={NUMBERS} />
        <tbody>
          {rounds.toReversed().map((round) => (
            <RoundRow key={`${round.number} ${round.attempt}`} id={id} round={round} selected={round === selected} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function RoundRow({ id, round, selected }: { id: string; round: Round; selected: boolean }) {
  const { number, needed, metrics } = round
  return (
    <tr data-selected={selected}>
      <th scope="row">
        <Link
          from="/experiments/$id"
          to="/experiments/$id"
          params={{ id }}
          search={(view) => ({ ...view, round: number })}
          replace
          resetScroll={false}
          className="row-link"
        >
          {number}
        </Link>
        {round.attempt > 1 && <span className="muted small"> attempt {round.attempt}</span>}
      </th>
      <td>
        <StateChip state={round.state} />
      </td>
      <td className="number">
        {round.accepted}
        <span className="muted"> / {round.participants}</span>
        {needed !== null && needed < round.participants && <span className="muted small"> {needed} needed</span>}
      </td>
      <td className="number">{round.rejected}</td>
      <td className="number">{formatBytes(round.bytes_up)}</td>
      <td className="number">{formatBytes(round.bytes_down)}</td>
      <td className="number">
        {round.committed_at === null ? '–' : formatSeconds(secondsBetween(round.opened_at, round.committed_at))}
      </td>
      <td className="number">{formatMetric('train_loss', metrics.train_loss)}</td>
      <td className="number">{formatMetric('eval_loss', metrics.eval_loss)}</td>
      <td className="number">{formatMetric('rouge_l', metrics.rouge_l)}</td>
      <td>
        <Digest value={round.digest} />
      </td>
    </tr>
  )
}
