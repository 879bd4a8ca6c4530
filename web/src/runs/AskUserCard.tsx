import { MessageCircleQuestion } from 'lucide-react';
import { useState } from 'react';
import { apiRequest } from '../api/http';
import type { AskUser, AskedQuestion } from '../chat/parts';
import { stripDirectionMarks } from '../markdown/hiddenCharacters';
import { text } from '../text';
import { Button } from '../ui/button';
import { classes } from '../ui/classes';
import { INPUT } from '../ui/field';

interface Answer {
  selected: string[];
  custom: string;
}

const NO_ANSWER: Answer = { selected: [], custom: '' };

/** Card with questions of an agent to the user. */
export function AskUserCard({ askUser }: { askUser: AskUser }) {
  const [answers, setAnswers] = useState<Record<number, Answer>>({});
  const [state, setState] = useState<'open' | 'sending' | 'sent'>('open');
  const [problem, setProblem] = useState<string>();
  const isOver = askUser.end !== undefined || state === 'sent';
  const isComplete = askUser.questions.every((_, index) => {
    const { selected, custom } = answers[index] ?? NO_ANSWER;
    return selected.length > 0 || custom.trim() !== '';
  });
  const send = async () => {
    setState('sending');
    const responses = askUser.questions.map((_, index) => {
      const { selected, custom } = answers[index] ?? NO_ANSWER;
      return { question_index: index, selected, ...(custom.trim() !== '' && { custom_text: custom.trim() }) };
    });
    try {
      await apiRequest('POST', '/api/ask-user-response', { question_id: askUser.questionId, answers: responses });
      setState('sent');
    } catch (failure) {
      setProblem(failure instanceof Error ? failure.message : text.failed);
      setState('open');
    }
  };
  return (
    <section aria-label={text.runs.question} className="max-w-xl space-y-4 rounded-xl border bg-raised p-3.5">
      {askUser.questions.map((question, index) => (
        <QuestionPart
          key={index}
          question={question}
          answer={answers[index] ?? NO_ANSWER}
          isOver={isOver}
          onAnswer={(answer) => setAnswers({ ...answers, [index]: answer })}
        />
      ))}
      {problem !== undefined && (
        <p role="alert" className="text-sm text-danger">
          {problem}
        </p>
      )}
      {isOver ? (
        <p role="status" className="text-sm text-soft">
          {outcomeText(askUser.end)}
        </p>
      ) : (
        <Button variant="primary" size="small" disabled={!isComplete || state === 'sending'} onClick={() => void send()}>
          {text.runs.answer}
        </Button>
      )}
    </section>
  );
}

function outcomeText(end: AskUser['end']): string {
  if (end === undefined) return text.runs.answerSent;
  if (end.answeredBy !== undefined) return text.runs.answered(end.answeredBy, end.chosen);
  return end.isExpired ? text.runs.answerTimedOut : text.runs.answerUnneeded;
}

interface PartProps {
  question: AskedQuestion;
  answer: Answer;
  isOver: boolean;
  onAnswer: (answer: Answer) => void;
}

function QuestionPart({ question, answer, isOver, onAnswer }: PartProps) {
  const { selected, custom } = answer;
  const choose = (label: string) => {
    const others = selected.filter((other) => other !== label);
    if (question.multiSelect) onAnswer({ custom, selected: others.length < selected.length ? others : [...others, label] });
    else onAnswer({ custom: '', selected: [label] });
  };
  return (
    <fieldset disabled={isOver}>
      <legend className="mb-2 flex items-center gap-2 text-sm font-semibold">
        <MessageCircleQuestion size={16} className="shrink-0 text-accent" />
        {question.question}
      </legend>
      <div className="grid gap-1.5 sm:grid-cols-2">
        {question.options.map(({ label, description, preview }) => {
          const isChosen = selected.includes(label);
          return (
            <button
              key={label}
              type="button"
              aria-pressed={isChosen}
              onClick={() => choose(label)}
              className={classes(
                'flex flex-col rounded-lg border px-3 py-2 text-left text-sm disabled:opacity-70',
                isChosen ? 'border-accent bg-accent-soft' : !isOver && 'hover:border-line-strong hover:bg-hover',
              )}
            >
              <span className="font-medium">{stripDirectionMarks(label)}</span>
              {description !== undefined && <span className="block text-xs text-soft">{description}</span>}
              {preview !== undefined && isChosen && (
                <pre className="mt-2 overflow-x-auto font-mono text-xs leading-tight">{preview}</pre>
              )}
            </button>
          );
        })}
      </div>
      {!isOver && (
        <input
          aria-label={text.runs.otherAnswer}
          placeholder={text.runs.otherAnswer}
          className={classes(INPUT, 'mt-1.5 h-8 py-1 text-sm')}
          value={custom}
          onChange={({ target }) => onAnswer({ selected: question.multiSelect ? selected : [], custom: target.value })}
        />
      )}
    </fieldset>
  );
}
