import './update-statistics.css'

import { useQuery } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { updateStatisticsQuery } from '@/api/queries'
import type { Experiment, RoundUpdate } from '@/api/types'
import type { ChangeExperimentUrl, ExperimentUrlState } from '@/features/experiment/url-state'
import { formatCount } from '@/lib/format'
import { ProblemNotice } from '@/lib/ui/notice'

import { BlockChart, type BlockLine } from './block-chart'
import { CosineMatrix } from './cosine-matrix'
import { assessNoise, errorOf } from './noise-assessment'
import { NoiseSection } from './noise-section'

interface Props {
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

/** Statistics of a round's update, whether K is large enough, and the noise of the projection. */
export default function InsideTab({ experiment, view, onView }: Props) {
  return (
    <>
      <UpdateSection experiment={experiment} view={view} onView={onView} />
      <NoiseSection id={experiment.id} />
    </>
  )
}

/** The newest round is shown unless one is chosen. */
function UpdateSection({ experiment: { id, round: newest }, view, onView }: Props) {
  const round = Math.min(view.round ?? newest, Math.max(newest, 1))
  const { data, error } = useQuery({
    ...updateStatisticsQuery(id, round),
    enabled: newest > 0,
    placeholderData: (before) => before,
  })
  if (newest === 0) return <p className="muted">No round is committed yet. The update of the first one appears here.</p>
  return (
    <>
      <RoundChooser
        round={round}
        newest={newest}
        onChoose={(chosen) => {
          onView({ round: chosen === newest ? undefined : chosen })
        }}
      />
      {error && <ProblemNotice problem={toProblem(error)} />}
      {data && !error && <Update update={data} file={`${id}-update-${round}`} />}
    </>
  )
}

function Update({ update, file }: { update: RoundUpdate; file: string }) {
  const { blocks, K, agreement } = update
  return (
    <div className="update" data-testid="update" data-round={update.round}>
      <Answer update={update} />
      <h2 className="visually-hidden">Blocks</h2>
      {K && (
        <BlockChart
          title="K over the blocks"
          unit="coordinates, mean over participants"
          testId="update-k"
          file={`${file}-k`}
          blocks={blocks}
          lines={[{ name: 'K', column: 'K', colour: '--accent', dash: [], values: K }]}
          bars
          format={formatCount}
        />
      )}
      <BlockChart
        title={K ? 'Step, noise and weights' : 'Step and weights'}
        unit="RMS per weight"
        testId="update-blocks"
        file={`${file}-blocks`}
        blocks={blocks}
        lines={linesOf(update)}
        format={short}
      />
      {agreement ? (
        <CosineMatrix agreement={agreement} file={`${file}-cosines`} />
      ) : (
        <p className="muted small">
          This round has no cosines. It had fewer than two participants, one-bit coordinates of fewer than eight weights
          each, or an algorithm with uploads that do not contain the update.
        </p>
      )}
    </div>
  )
}

function Answer({ update }: { update: RoundUpdate }) {
  const assessment = assessNoise(update)
  if (assessment === null) return <p>The update is not projected, so it has no projection noise.</p>
  return (
    <div className="update-answer" data-testid="update-answer" data-suffices={assessment.suffices}>
      <p>
        <strong>{assessment.answer}</strong>
      </p>
      {assessment.ways.length > 0 && (
        <>
          <p>Any one of these changes is enough:</p>
          <ul>
            {assessment.ways.map((way) => (
              <li key={way}>
                <code>{way}</code>
              </li>
            ))}
          </ul>
        </>
      )}
      <p className="muted small">{errorOf(update)}</p>
    </div>
  )
}

function linesOf({ step, noise, weights, update }: RoundUpdate): BlockLine[] {
  return [
    { name: 'weights', column: 'weights', colour: '--muted', dash: [2, 4], values: weights },
    { name: 'step', column: 'step', colour: '--accent', dash: [], values: step },
    ...(noise ? [{ name: 'noise', column: 'noise', colour: '--second', dash: [6, 4], values: noise }] : []),
    ...(update ? [{ name: 'own update', column: 'update', colour: '--text', dash: [1, 3], values: update }] : []),
  ]
}

function short(value: number): string {
  return value === 0 || (value >= 0.001 && value < 10_000)
    ? String(Number(value.toPrecision(3)))
    : value.toExponential(1)
}

interface RoundChooserProps {
  round: number
  newest: number
  onChoose: (round: number) => void
}

/** A committed round. */
function RoundChooser({ round, newest, onChoose }: RoundChooserProps) {
  const choose = (wanted: number) => {
    if (Number.isInteger(wanted)) onChoose(Math.min(Math.max(wanted, 1), newest))
  }
  return (
    <div className="round-chooser">
      <button
        type="button"
        className="button"
        aria-label="Previous round"
        disabled={round <= 1}
        onClick={() => {
          choose(round - 1)
        }}
      >
        ‹
      </button>
      <label>
        Round{' '}
        <input
          type="number"
          min={1}
          max={newest}
          value={round}
          onChange={(event) => {
            choose(event.target.valueAsNumber)
          }}
        />
      </label>
      <span className="muted">of {newest}</span>
      <button
        type="button"
        className="button"
        aria-label="Next round"
        disabled={round >= newest}
        onClick={() => {
          choose(round + 1)
        }}
      >
        ›
      </button>
    </div>
  )
}
