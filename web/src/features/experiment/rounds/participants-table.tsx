import { useInfiniteQuery } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { contributionsQuery } from '@/api/queries'
import type { Contribution } from '@/api/types'
import { formatBytes, formatSeconds } from '@/lib/format'
import { formatMetric } from '@/lib/metrics'
import { ShortDigest } from '@/lib/ui/copy-button'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { SiteName } from '@/lib/ui/site-name'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'

const COLUMNS = [
  'Participant',
  'Kind',
  'State',
  'Examples',
  'Train loss',
  'Seconds',
  'Sent',
  'Received',
  'Contribution',
]

const NUMBERS = COLUMNS.slice(3, -1)

/** The participants of a round; `live` while it is under way. */
export function ParticipantsTable({ id, round, live }: { id: string; round: number; live: boolean }) {
  const query = useInfiniteQuery(contributionsQuery(id, round, live))
  return (
    <>
      {query.error && <ProblemNotice problem={toProblem(query.error)} />}
      <div className="table-scroll tall" tabIndex={0} role="group" aria-label={`Participants of round ${round}`}>
        <table>
          <TableHead columns={COLUMNS} numbers={NUMBERS} />
          <tbody>
            {query.data?.pages
              .flatMap((page) => page.items)
              .map((contribution) => (
                <ContributionRow
                  key={`${contribution.attempt} ${contribution.participant}`}
                  contribution={contribution}
                />
              ))}
          </tbody>
        </table>
      </div>
      <MoreButton list={query} />
    </>
  )
}

function ContributionRow({ contribution }: { contribution: Contribution }) {
  const {
    participant,
    display_name: name,
    attempt,
    kind,
    state,
    error,
    examples,
    seconds,
    size,
    bytes_down: down,
    digest,
    metrics,
    factor,
  } = contribution
  return (
    <tr>
      <th scope="row">
        <SiteName name={name} id={participant} />
        {attempt > 1 && <span className="muted small"> attempt {attempt}</span>}
      </th>
      <td>{kind}</td>
      <td>
        <StateChip state={state} />
        {factor !== null && (
          <span className="muted small"> clipped to {(100 * factor).toPrecision(3)} % of its norm</span>
        )}
        {error && (
          <span className="row-error">
            {error.title}: {error.detail}
          </span>
        )}
      </td>
      <td className="number">{examples ?? '–'}</td>
      <td className="number">{formatMetric('train_loss', metrics.train_loss)}</td>
      <td className="number">{seconds === null ? '–' : formatSeconds(seconds)}</td>
      <td className="number">{size === null ? '–' : formatBytes(size)}</td>
      <td className="number">{down === null ? '–' : formatBytes(down)}</td>
      <td>
        <ShortDigest value={digest} />
      </td>
    </tr>
  )
}
