import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { toProblem } from '@/api/problem'
import { roundsQuery } from '@/api/queries'
import type { Round } from '@/api/types'
import { sumText } from '@/features/experiment/privacy/privacy-text'
import { formatBytes, formatSeconds, secondsBetween } from '@/lib/format'
import { formatMetric } from '@/lib/metrics'
import { ShortDigest } from '@/lib/ui/copy-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'
import { type RowPlace, VirtualTable } from '@/lib/ui/virtual-table'

import { ParticipantsTable } from './participants-table'

interface Props {
  id: string
  chosen: number | undefined
}

/** All rounds, and the participants of the chosen one, which is the newest by default. */
export function RoundsSection({ id, chosen }: Props) {
  const { data: rounds = [], error, isSuccess } = useQuery(roundsQuery(id))
  const selected = rounds.findLast((round) => round.number === chosen) ?? rounds.at(-1)

  return (
    <section aria-labelledby="rounds">
      <header className="section-header">
        <h2 id="rounds">Rounds</h2>
        {rounds.length > 1 && <span className="muted small">Select a round to see its participants</span>}
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {rounds.length === 0 && isSuccess && <p className="muted">No round has opened yet.</p>}
      {selected && (
        <>
          <RoundsTable id={id} rounds={rounds} selected={selected} />
          <h3 className="subheading">Participants in round {selected.number}</h3>
          {selected.groups.length > 0 && <p className="muted small sum-note">Secure sums: {sumText(selected)}</p>}
          <ParticipantsTable id={id} round={selected.number} live={selected.state === 'open'} />
        </>
      )}
    </section>
  )
}

interface TableProps {
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
const ROW_HEIGHT = 48

/** The newest round comes first. */
function RoundsTable({ id, rounds, selected }: TableProps) {
  const last = rounds.length - 1
  return (
    <VirtualTable
      label="Rounds"
      testId="rounds-table"
      head={<TableHead columns={COLUMNS} numbers={NUMBERS} />}
      columns={COLUMNS.length}
      count={rounds.length}
      height={ROW_HEIGHT}
      first={last - rounds.indexOf(selected)}
      row={(index, place) => {
        const round = rounds[last - index]
        return (
          round && (
            <RoundRow
              key={`${round.number} ${round.attempt}`}
              id={id}
              round={round}
              place={place}
              selected={round === selected}
            />
          )
        )
      }}
    />
  )
}

interface RowProps {
  id: string
  round: Round
  place: RowPlace
  selected: boolean
}

function RoundRow({ id, round, place, selected }: RowProps) {
  const { number, required_contributions: required, metrics } = round
  return (
    <tr {...place} data-selected={selected}>
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
        {required !== null && required < round.participants && <span className="muted small"> {required} needed</span>}
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
        <ShortDigest value={round.digest} />
      </td>
    </tr>
  )
}
