import type { ChangeExperimentUrl, ExperimentUrlState } from '@/features/experiment/url-state'
import { numberWithin, positiveInteger, wholeNumber } from '@/lib/search-params'
import { Field } from '@/lib/ui/field'

export const TOKENS = 128

interface Props {
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
  models: { round: number; name: string }[]
  chosen: number
}

/** The model and its sampling options, all stored in the URL. */
export function Options({ view, onView, models, chosen }: Props) {
  return (
    <div className="ask-options">
      <Field label="Model">
        <select
          value={chosen}
          onChange={(event) => {
            onView({ model: wholeNumber(event.target.value) })
          }}
        >
          {models.map(({ round, name }) => (
            <option key={round} value={round}>
              {name}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Temperature" hint="0 gives the most probable answer">
        <input
          type="number"
          min={0}
          max={2}
          step={0.1}
          value={view.temperature ?? 0}
          onChange={(event) => {
            onView({ temperature: numberWithin(event.target.value, 0, 2) })
          }}
        />
      </Field>
      <Field label="Longest answer" hint="in tokens">
        <input
          type="number"
          min={1}
          max={2048}
          value={view.tokens ?? TOKENS}
          onChange={(event) => {
            onView({ tokens: positiveInteger(event.target.value) })
          }}
        />
      </Field>
      <Field label="Seed" hint="the same seed gives the same answer">
        <input
          type="number"
          min={0}
          value={view.seed ?? 0}
          disabled={!view.temperature}
          onChange={(event) => {
            onView({ seed: wholeNumber(event.target.value) })
          }}
        />
      </Field>
    </div>
  )
}
