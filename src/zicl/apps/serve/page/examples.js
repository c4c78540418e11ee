// Example texts and labels, written for this page: what visitors of a small theatre wrote down.

const EXAMPLE_LABELS = [
  { name: "stage", synonyms: ["play"], description: "what was shown and how it was played" },
  { name: "table", synonyms: ["food"], description: "what was eaten and drunk" },
  { name: "road", synonyms: ["journey"], description: "the way there and back" },
];
const EXAMPLES = [
  "The choir was so good that the rain outside simply stopped mattering.",
  "We walked an hour for that bread, ate half of it on the way back, and went again the next morning.",
  "The last bus had left, and a stranger drove four of us home.",
];
const EXAMPLE_LINES = `The lamp failed twice in the first act, and still nobody in the hall wanted the evening to end.
The lead forgot her lines once and made the silence part of the scene.
A chair fell over on stage and the actors built it into the joke.
The second act is too long by a third, and the villain explains himself twice.
The choir sang from the balcony, and the whole hall turned round.
The costumes were sewn from old curtains and looked like a court.
I have seen this play four times and never with such a quiet ending.
The young actor who played the keeper hardly spoke and owned the evening.
The director cut the final monologue, and the play is better for it.
The set was one door and one table, and I believed in the whole house.
The orchestra was so loud that the singers moved their lips for nothing.
In the third scene they cook a real dinner on stage, and the front row can smell it.
The puppet of the whale needed six people and was worth every one of them.
The jokes were older than the theatre, and the actors knew it.
Her last song was so soft that you could hear the programme notes rustle.
The duel was staged so slowly that I counted the steps.
The last scene is set in a night bus, and its driver hums the song of the choir.
The children in the play were better than the grown actors.
The narrator was funny for ten minutes and stayed for two hours.
The curtain rose late, and the first scene was over before the hall was quiet.
The soup in the foyer was cold, and the second bowl was too.
The bread at the bar is baked in the afternoon and gone by the interval.
The waiter brought the wrong wine, apologised, and left us both bottles.
Two hours of waiting for a plate of cheese with three grapes.
The mushroom pie was the best I have eaten in a theatre.
The coffee tasted of the machine, and the milk was warm.
They serve a plum cake in the interval that I would drive out for.
The kitchen closes before the play ends, so eat first.
We ate our sandwiches in the car, in front of the theatre, in the rain.
My glass was dirty and so was the one that replaced it.
The lemonade is made from their own herbs and costs next to nothing.
The sausages were burnt on one side and raw on the other.
The cook came out to ask whether we liked the stew, and we did.
The waiter recited half of the second act while he poured the soup.
The cheese platter was generous, and the bread basket was filled twice.
Dessert came with the bill, and the bill was wrong.
The tea was served in a pot with a biscuit that they bake themselves.
The fish was dry, the potatoes were excellent.
The bar ran out of glasses and handed out cups, with a smile.
A small beer and a pretzel cost as much as my ticket.
The last bus leaves ten minutes before the play ends.
There are eleven parking places for two hundred guests.
The train stopped in every village, and we arrived after the first scene.
The path from the station is not lit, bring a lamp.
We shared a taxi with two strangers, and it was cheaper than the car park.
The bridge was closed, and the detour took us through three valleys.
The ride home along the river was the best part of the night.
The sign to the theatre points to the cemetery, follow it anyway.
Bicycles can be left behind the hall, under a roof and under a camera.
The driver waited for us because he had seen the play himself.
The motorway was blocked for an hour, and nobody at the station knew of a bus.
The ferry back was full, so we stood on the deck and sang.
The car park charges by the minute and the barrier takes its time.
The walk uphill is steep, and the view makes you forget it.
Because of the traffic we missed the bread, the wine and the first scene.
The tram runs every six minutes and stops in front of the door.
We missed the connection by one minute and waited ninety on the platform.
The road along the lake was frozen, so we drove at walking pace.
A shuttle from the market square takes you there and back for nothing.
The taxi never came, and the porter drove us to the station himself.`.split("\n");
